import type { Database } from '../database/schema.ts';
import type { Job } from '../jobs/runner.ts';
import type { DeliverySettings } from '../settings.ts';
import { logOutcome } from './attempts.ts';
import { postWebhook } from './post.ts';

/**
 * Makes one attempt at a delivery and logs it. Throws when the delivery is to be tried again later.
 * A delivery ends as `Delivered`, as `Failed` after the last attempt, or waits as `Held` while its subscription is
 * paused. A crash at any line leaves the job to be run again: at least once, never lost.
 */
export async function deliver(
  db: Database,
  settings: DeliverySettings,
  now: () => Date,
  job: Job,
): Promise<void> {
  const deliveryId = job.data.deliveryId ?? '';
  const delivery = await db
    .selectFrom('deliveries')
    .innerJoin('subscriptions', 'subscriptions.id', 'deliveries.subscription_id')
    .innerJoin('events', 'events.id', 'deliveries.event_id')
    .select(['deliveries.status', 'deliveries.attempts', 'subscription_id', 'event_id', 'events.payload'])
    .select(['url', 'secret', 'consecutive_failures', 'subscriptions.status as subscription_status'])
    .select('consecutive_failures')
    .where('deliveries.id', '=', deliveryId)
    .executeTakeFirst();
  // Its subscription may have been deleted since, and an earlier run may have ended without telling the queue.
  if (delivery?.status !== 'Pending') return;
  if (delivery.subscription_status !== 'Active') {
    const isHeld = await hold(db, deliveryId, delivery.subscription_id);
    if (isHeld) return;
  }
  const { url, secret } = delivery;
  const attemptedAt = now();
  const message = { url, secret, id: delivery.event_id, payload: JSON.stringify(delivery.payload) };
  const outcome = await postWebhook(message, settings.timeoutMs, settings.allowPrivate);
  const attempted = { deliveryId, attemptedAt, run: job.retryCount + 1, ...delivery };
  const status = await logOutcome(db, settings, attempted, outcome);
  if (status === 'Pending') throw new Error(outcome.error ?? 'not delivered');
}

/** Puts a delivery aside while its subscription is paused. False when it has been resumed in the meantime. */
function hold(db: Database, deliveryId: string, subscriptionId: string): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const paused = await trx
      .selectFrom('subscriptions')
      .select('id')
      .where('id', '=', subscriptionId)
      .where('status', '<>', 'Active')
      .forShare()
      .executeTakeFirst();
    if (!paused) return false;
    await trx.updateTable('deliveries').set({ status: 'Held' }).where('id', '=', deliveryId).execute();
    return true;
  });
}
