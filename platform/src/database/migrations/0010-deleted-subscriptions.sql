-- The deletion of a subscription does not wait for its log, which may have millions of rows. The hourly deletion of old data removes them.
-- A subscription that an earlier version deletes beside this one leaves its log in the same way.
alter table deliveries drop constraint deliveries_subscription_id_fkey;
