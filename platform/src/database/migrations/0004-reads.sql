-- Lists hold what the acting Account owns and what it is the other party of.
create index resources_of_counterparty on resources (kind, counterparty_account_id, sequence)
  where counterparty_account_id is not null;

-- Operations are listed like resources.
alter table operations add column sequence bigint generated always as identity;
alter table operations add column external_id text;
create index operations_of_account on operations (account_id, sequence);
create index operations_of_person on operations (person_id, sequence) where person_id is not null;

-- The Account of a snapshot was the first part of its query: `["acct_1"]["searchPayees",[]]`.
alter table search_snapshots add column account_id text;
update search_snapshots set
  account_id = (substring(query from '^\[("(?:[^"\\]|\\.)*")\]')::jsonb) #>> '{}',
  query = substring(query from '^\["(?:[^"\\]|\\.)*"\](.*)$');
alter table search_snapshots alter column account_id set not null;
create index search_snapshots_of_account on search_snapshots (account_id, expires_at);
