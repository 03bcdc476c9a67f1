import { randomUUID } from 'node:crypto';
import type { Database } from '../database/schema.ts';
import { isSubscribed } from '../events/subscribed.ts';
import { createAlarm } from '../jobs/alarm.ts';
import type { Jobs } from '../jobs/queue.ts';

export const DELIVERY_QUEUE = 'deliveries';

const BATCH = 100;
/** How long an event waits at most when nobody said that it was written. */
const POLL_MS = 1000;

export interface Relay {
  /** There may be new events: look now. */
  wake(): void;
  stop(): Promise<void>;
}

/**
 * Turns the events of the outbox into deliveries, one for each subscription of their recipient that wants them.
 * Marking an event as relayed and enqueuing its deliveries is one transaction, so a crash between the two cannot
 * happen; several processes share the work by skipping each other's rows.
 */
export function startRelay(
  db: Database,
  jobs: Jobs,
  now: () => Date,
  onError: (error: Error) => void,
): Relay {
  let isStopped = false;
  const alarm = createAlarm(POLL_MS);
  const loop = async () => {
    while (!isStopped) {
      const woken = alarm.set();
      const relayed = await relayBatch(db, jobs, now()).catch((error: Error) => {
        onError(error);
        return 0;
      });
      if (relayed > 0) jobs.wake();
      if (relayed < BATCH) await woken;
      else alarm.ring();
    }
  };
  const ended = loop();
  return {
    wake: () => alarm.ring(),
    async stop() {
      isStopped = true;
      alarm.ring();
      await ended;
    },
  };
}

/** The number of events that were relayed; as many as fit one transaction. */
async function relayBatch(db: Database, jobs: Jobs, now: Date): Promise<number> {
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
      .select(['id', 'scope_type', 'scope_id', 'subscribed_events', 'status'])
      .where('scope_id', 'in', [...new Set(events.map((event) => event.scope_id))])
      // Nobody resumes a subscription between this look at its status and the deliveries held because of it.
      .forShare()
      .execute();
    const deliveries = events.flatMap((event) =>
      subscriptions
        .filter((one) => one.scope_type === event.scope_type && one.scope_id === event.scope_id)
        .filter((one) => isSubscribed(one.subscribed_events, event.type))
        .map((one) => ({
          id: `dlv_${randomUUID()}`,
          subscription_id: one.id,
          event_id: event.id,
          status: one.status === 'Active' ? 'Pending' : 'Held',
          created_at: now,
          delivered_at: null,
        })),
    );
    if (deliveries.length > 0) await trx.insertInto('deliveries').values(deliveries).execute();
    const pending = deliveries.filter((delivery) => delivery.status === 'Pending');
    await jobs.enqueue(
      trx,
      DELIVERY_QUEUE,
      pending.map((delivery) => ({ data: { deliveryId: delivery.id } })),
    );
    const ids = events.map((event) => event.id);
    await trx.updateTable('events').set({ relayed_at: now }).where('id', 'in', ids).execute();
    return events.length;
  });
}
