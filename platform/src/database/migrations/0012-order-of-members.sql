-- The fingerprint of a request whatever the order of its members. Null in rows of earlier versions, which compare `fingerprint`.
alter table idempotency_keys add column unordered_fingerprint text;
