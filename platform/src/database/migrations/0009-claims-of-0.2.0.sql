-- Version 0.2.0 may run beside this one during an upgrade or after a rollback. Its claim sets `is_under_way` and ignores
-- `leased_until`, so it would also send what this version is sending. The trigger skips those rows, and the claim does not return
-- rows that are skipped. A claim of this version does not set `is_under_way`, so it costs no call of the trigger.
create function weir_skip_leased_delivery() returns trigger language plpgsql as $$ begin return null; end $$;
create trigger skip_leased_delivery before update of is_under_way on delivery_queue
  for each row when (new.is_under_way and old.leased_until > now())
  execute function weir_skip_leased_delivery();
