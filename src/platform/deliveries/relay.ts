import { randomUUID } from 'node:crypto';
import type { Database } from '../database/schema.ts';
import { isSubscribed } from '../events/subscribed.ts';
import { type Polling, startPolling } from '../jobs/polling.ts';
import { queueDeliveries } from './queue.ts';

const BATCH = 100;
/** Longest wait for an event that another process wrote. */
const POLL_MS = 1000;

/**
 * Turns the events of the outbox into deliveries, one for each matching subscription of the recipient, and calls
 * `onQueued` after each batch. An event is marked as relayed in the transaction that queues its deliveries, so a crash
 * cannot separate the two. Several processes share the work by skipping each other's rows.
 */
export function startRelay(
  db: Database,
  now: () => Date,
  onQueued: () => void,
  onError: (error: Error) => void,
): Polling {
  const look = async () => {
    const relayed = await relayBatch(db, now());
    if (relayed > 0) onQueued();
    return relayed === BATCH;
  };
  return startPolling(POLL_MS, look, onError);
}

/** Relays one batch in one transaction, and returns the number of its events. */
async function relayBatch(db: Database, now: Date): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const events = await trx
      .selectFrom('events')
      .select(['id', 'type', 'scope_type', 'scope_id'])
      .where('relayed_at', 'is', null)
      .orderBy('sequence')
      .limit(BATCH)
      .forUpdate()
      .skipLocked()
      .execute();
    if (events.length === 0) return 0;
    const subscriptions = await trx
      .selectFrom('subscriptions')
      .select(['id', 'scope_type', 'scope_id', 'subscribed_events'])
      .where('scope_id', 'in', [...new Set(events.map((event) => event.scope_id))])
      // Locks the subscriptions, so that they cannot be deleted before their deliveries are written.
      .forKeyShare()
      .execute();
    const deliveries = events.flatMap((event) =>
      subscriptions
        .filter((one) => one.scope_type === event.scope_type && one.scope_id === event.scope_id)
        .filter((one) => isSubscribed(one.subscribed_events, event.type))
        .map((one) => ({
          id: `dlv_${randomUUID()}`,
          subscription_id: one.id,
          event_id: event.id,
          status: 'Pending',
          created_at: now,
          delivered_at: null,
        })),
    );
    if (deliveries.length > 0) await trx.insertInto('deliveries').values(deliveries).execute();
    await queueDeliveries(trx, deliveries, now);
    const ids = events.map((event) => event.id);
    await trx.updateTable('events').set({ relayed_at: now }).where('id', 'in', ids).execute();
    return events.length;
  });
}
