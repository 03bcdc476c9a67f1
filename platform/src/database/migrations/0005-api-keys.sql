-- The keys that authenticate, by the SHA-256 of each in hex. The key itself is kept nowhere.
create table api_keys (
  digest text primary key,
  resource_id text not null unique references resources (id) on delete cascade
);
