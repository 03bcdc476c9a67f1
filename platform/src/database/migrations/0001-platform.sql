-- Every business resource of contract section 2.1: what the contract fixes are columns, the rest is `fields`.
create table resources (
  sequence bigint generated always as identity primary key,
  id text not null unique,
  kind text not null,
  account_id text,
  counterparty_account_id text,
  organization_id text,
  person_id text,
  parent jsonb,
  status text not null,
  external_id text,
  fields jsonb not null default '{}',
  events jsonb not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index resources_of_account on resources (kind, account_id, sequence);
create index resources_of_organization on resources (kind, organization_id, sequence) where organization_id is not null;
create index resources_of_person on resources (kind, person_id, sequence) where person_id is not null;

create table operations (
  id text primary key,
  type text not null,
  account_id text not null,
  principal_id text not null,
  status text not null,
  input jsonb not null,
  result jsonb,
  error jsonb,
  events jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table subscriptions (
  sequence bigint generated always as identity primary key,
  id text not null unique,
  scope_type text not null,
  scope_id text not null,
  url text not null,
  description text,
  subscribed_events jsonb not null,
  secret text not null,
  status text not null,
  paused_reason text,
  consecutive_failures integer not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index subscriptions_of_scope on subscriptions (scope_type, scope_id);

-- The outbox: a row is written with the change that it reports, and relayed to subscribers afterwards.
create table events (
  sequence bigint generated always as identity primary key,
  id text not null unique,
  occurrence_id text not null,
  type text not null,
  scope_type text not null,
  scope_id text not null,
  payload json not null,
  occurred_at timestamptz not null,
  relayed_at timestamptz
);
create index events_to_relay on events (sequence) where relayed_at is null;

create table deliveries (
  sequence bigint generated always as identity primary key,
  id text not null unique,
  subscription_id text not null references subscriptions (id) on delete cascade,
  event_id text not null references events (id),
  status text not null,
  attempts integer not null default 0,
  created_at timestamptz not null,
  delivered_at timestamptz
);
create index deliveries_of_subscription on deliveries (subscription_id, sequence);
create index deliveries_of_event on deliveries (event_id);

create table delivery_attempts (
  delivery_id text not null references deliveries (id) on delete cascade,
  number integer not null,
  attempted_at timestamptz not null,
  duration_ms integer not null,
  response_status integer,
  error text,
  primary key (delivery_id, number)
);

create table search_snapshots (
  id text primary key,
  query text not null,
  total_size integer not null,
  expires_at timestamptz not null
);
create table search_snapshot_rows (
  snapshot_id text not null references search_snapshots (id) on delete cascade,
  position bigint not null,
  resource jsonb not null,
  primary key (snapshot_id, position)
);

create table idempotency_keys (
  account_id text not null,
  key text not null,
  fingerprint text not null,
  status integer,
  body json,
  created_at timestamptz not null,
  primary key (account_id, key)
);

create table audit_logs (
  sequence bigint generated always as identity primary key,
  id text not null unique,
  account_id text not null,
  principal_id text not null,
  operation text not null,
  target text not null,
  created_at timestamptz not null
);
create index audit_logs_of_account on audit_logs (account_id, sequence);

create table secrets (name text primary key, value text not null);
