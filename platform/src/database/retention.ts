import { sql } from 'kysely';
import type { Database } from './schema.ts';

const DAY_MS = 24 * 3600 * 1000;
/** How long events and their deliveries can be read and redelivered. */
const EVENT_DAYS = 30;
/** How long deliveries are held if the subscription was paused by request. */
const PAUSED_DAYS = 90;
const EVERY_MS = 3600 * 1000;

/** Deletes expired data every hour. Several processes may do so at the same time. */
export function startRetention(db: Database, now: () => Date, onError: (error: Error) => void): () => void {
  const timer = setInterval(() => void deleteExpired(db, now()).catch(onError), EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Deletes idempotency keys after a day, expired snapshots and Sessions, the log of deleted subscriptions, and events after a month unless
 * a delivery is still pending. What is held does not count as pending after a month if the endpoint failed, and after three months if the
 * subscription was paused by request, because nothing says that it will resume.
 */
export async function deleteExpired(db: Database, now: Date): Promise<void> {
  const daysAgo = (days: number) => new Date(now.getTime() - days * DAY_MS);
  await db.deleteFrom('idempotency_keys').where('created_at', '<', daysAgo(1)).execute();
  await db.deleteFrom('search_snapshots').where('expires_at', '<', now).execute();
  await db
    .deleteFrom('resources')
    .where('kind', '=', 'Session')
    // Both are texts of `toISOString`.
    .where(sql<string>`fields ->> 'expiresAt'`, '<', now.toISOString())
    .execute();
  // Skips what others change at this moment, so that it cannot wait for them while they wait for it.
  await sql`
    with held as (
      select delivery_id from delivery_queue
      join deliveries on deliveries.id = delivery_id
      join subscriptions on subscriptions.id = delivery_queue.subscription_id
      where subscriptions.status <> 'Active' and deliveries.created_at < case
        when paused_reason in ('EndpointFailing', 'EndpointGone') then ${daysAgo(EVENT_DAYS)}::timestamptz
        else ${daysAgo(PAUSED_DAYS)}::timestamptz end
      for update of delivery_queue skip locked
    )
    delete from delivery_queue using held where delivery_queue.delivery_id = held.delivery_id
  `.execute(db);
  await sql`
    with old as (
      delete from deliveries where (
        created_at < ${daysAgo(EVENT_DAYS)}
        and not exists (select from delivery_queue where delivery_queue.delivery_id = deliveries.id)
      ) or not exists (select from subscriptions where subscriptions.id = deliveries.subscription_id)
      returning id
    )
    delete from delivery_attempts using old where delivery_id = old.id
  `.execute(db);
  // A delivery that was queued again while it or its subscription was deleted.
  await sql`
    delete from delivery_queue
    where not exists (select from deliveries where deliveries.id = delivery_queue.delivery_id)
      or not exists (select from subscriptions where subscriptions.id = delivery_queue.subscription_id)
  `.execute(db);
  await db
    .deleteFrom('events')
    .where('relayed_at', '<', daysAgo(EVENT_DAYS))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('deliveries')
            .select(sql.lit(1).as('one'))
            .whereRef('deliveries.event_id', '=', 'events.id'),
        ),
      ),
    )
    .execute();
}
