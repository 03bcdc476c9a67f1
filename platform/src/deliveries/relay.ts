import type { Database } from '../database/schema.ts';
import { type Polling, startPolling } from '../jobs/polling.ts';
import { queueEvents } from './fan-out.ts';

const BATCH = 100;
/** Longest wait for an event that another process wrote. */
const POLL_MS = 1000;

/**
 * Queues the deliveries of events that a process of an earlier version wrote without them, and calls `onQueued` after each batch.
 * Several processes share the work by skipping each other's rows.
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
    await queueEvents(trx, events, now);
    const ids = events.map((event) => event.id);
    await trx.updateTable('events').set({ relayed_at: now }).where('id', 'in', ids).execute();
    return events.length;
  });
}
