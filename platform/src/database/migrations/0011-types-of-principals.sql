-- A Person and a ServiceAccount may have the same id, and a stored response may contain a secret. Null in rows of earlier versions.
alter table idempotency_keys add column principal_type text;
