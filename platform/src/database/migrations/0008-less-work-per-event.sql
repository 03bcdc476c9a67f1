-- Fewer rows, index entries and locks for each delivered event. Processes of the version before may run on this until they end.

-- A claim changes no indexed column, so that PostgreSQL updates the row in its page (HOT). `is_under_way` is that of the version before.
alter table delivery_queue add column leased_until timestamptz;
alter table delivery_queue set (fillfactor = 60);
alter table deliveries set (fillfactor = 60);

-- Each of these locked a row for each row inserted. What deletes a subscription or a delivery deletes what belongs to it.
alter table delivery_queue drop constraint delivery_queue_delivery_id_fkey;
alter table delivery_queue drop constraint delivery_queue_subscription_id_fkey;
alter table delivery_attempts drop constraint delivery_attempts_delivery_id_fkey;
alter table deliveries drop constraint deliveries_event_id_fkey;

-- Only the hourly deletion of old events read it.
drop index deliveries_of_event;
-- Redelivery of a time range reads the log of the subscription.
drop index deliveries_by_time;

-- Lists read by recipient or by subscription, and everything else by id: nothing reads by the number alone.
alter table events drop constraint events_pkey;
alter table deliveries drop constraint deliveries_pkey;
-- It is in the payload, and was read nowhere else.
alter table events alter column occurrence_id drop not null;
