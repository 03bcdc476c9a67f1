-- What still has to go out, apart from the log, so that the queue stays small however long the log is. A row is there
-- while its delivery is pending. While an attempt is under way, `due_at` is the end of its lease.
create table delivery_queue (
  delivery_id text primary key references deliveries (id) on delete cascade,
  subscription_id text not null references subscriptions (id) on delete cascade,
  due_at timestamptz not null,
  is_under_way boolean not null default false,
  -- Failed attempts since the delivery was queued; a redelivery starts at 0 again.
  failures integer not null default 0
);
create index delivery_queue_of_subscription on delivery_queue (subscription_id, due_at);

insert into delivery_queue (delivery_id, subscription_id, due_at)
select id, subscription_id, created_at from deliveries where status in ('Pending', 'Held');
update deliveries set status = 'Pending' where status = 'Held';
alter table deliveries add column redelivered_at timestamptz;

-- Since when every attempt has failed; null once one succeeded.
alter table subscriptions add column failing_since timestamptz;
-- When a subscription that was paused because its endpoint failed tries one delivery again.
alter table subscriptions add column probe_at timestamptz;
update subscriptions set failing_since = coalesce(
  (
    select min(attempted_at) from delivery_attempts join deliveries on deliveries.id = delivery_id
    where subscription_id = subscriptions.id and error is not null and attempted_at > coalesce(
      (select max(delivered_at) from deliveries where subscription_id = subscriptions.id), '-infinity'
    )
  ),
  updated_at
)
where consecutive_failures > 0;
alter table subscriptions drop column consecutive_failures;
