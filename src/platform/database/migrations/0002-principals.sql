-- The Person who asked for an operation; null when a ServiceAccount did.
alter table operations add column person_id text;

-- A key belongs to the principal that sent it and to the Account that it acted for. Kept answers of older versions
-- do not name their principal; they are dropped, which costs a client at most one repeated write.
delete from idempotency_keys;
alter table idempotency_keys drop constraint idempotency_keys_pkey;
alter table idempotency_keys add column principal_id text not null;
alter table idempotency_keys add primary key (account_id, principal_id, key);
