-- Lists hold what the acting Account owns and what it is the other party of.
create index resources_of_counterparty on resources (kind, counterparty_account_id, sequence)
  where counterparty_account_id is not null;

-- Operations are listed like resources.
alter table operations add column sequence bigint generated always as identity;
alter table operations add column external_id text;
create index operations_of_account on operations (account_id, sequence);
create index operations_of_person on operations (person_id, sequence) where person_id is not null;

-- Snapshots live for minutes: those of an older version are not worth a translation.
delete from search_snapshots;
alter table search_snapshots add column account_id text not null;
create index search_snapshots_of_account on search_snapshots (account_id, expires_at);
