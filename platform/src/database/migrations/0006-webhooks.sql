-- A secret that was replaced signs beside its successor for a while.
alter table subscriptions add column previous_secret text;
alter table subscriptions add column previous_secret_until timestamptz;

-- What the endpoint answered: the beginning of it, without what looks like a secret.
alter table delivery_attempts add column response_body text;

-- Events are read by their recipients, one resource at a time if asked for.
alter table events add column resource_id text;
update events set resource_id = payload -> 'data' ->> 'id';
alter table events alter column resource_id set not null;
create index events_of_recipient on events (scope_type, scope_id, sequence);
create index events_of_resource on events (scope_type, scope_id, resource_id, sequence);

-- Deliveries are sent again by their time.
create index deliveries_by_time on deliveries (subscription_id, created_at);
