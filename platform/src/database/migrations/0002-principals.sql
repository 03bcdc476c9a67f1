-- The Person who asked for an operation; null when a ServiceAccount did.
alter table operations add column person_id text;

-- A key belongs to the principal that sent it and to the Account that it acted for. The audit record of the same write names
-- the principal. Where several principals of an Account wrote in the same millisecond, nothing says whose key it is, so each of them
-- has it: a repeated request never writes twice.
alter table idempotency_keys add column principal_id text;
alter table idempotency_keys drop constraint idempotency_keys_pkey;
insert into idempotency_keys (account_id, key, fingerprint, status, body, created_at, principal_id)
select sent.account_id, sent.key, sent.fingerprint, sent.status, sent.body, sent.created_at, written.principal_id
from idempotency_keys sent
join (select distinct account_id, created_at, principal_id from audit_logs) written
  on written.account_id = sent.account_id and written.created_at = sent.created_at;
delete from idempotency_keys where principal_id is null;
alter table idempotency_keys add primary key (account_id, principal_id, key);
