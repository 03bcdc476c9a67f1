import type { Database } from '../database/schema.ts';
import type { Job } from '../jobs/runner.ts';
import type { DeliverySettings } from '../settings.ts';
import { type AttemptOutcome, postWebhook } from './post.ts';

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
    .select(['subscriptions.url', 'subscriptions.secret', 'subscriptions.status as subscription_status'])
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
  const status = await logAttempt(
    db,
    settings,
    { deliveryId, attemptedAt, run: job.retryCount + 1, ...delivery },
    outcome,
  );
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

interface Attempted {
  readonly deliveryId: string;
  readonly subscription_id: string;
  /** Over all runs of all its jobs. */
  readonly attempts: number;
  /** Of this job: a redelivery starts at 1 again. */
  readonly run: number;
  readonly attemptedAt: Date;
}

/** The delivery's status after the attempt. */
function logAttempt(
  db: Database,
  settings: DeliverySettings,
  attempted: Attempted,
  outcome: AttemptOutcome,
): Promise<string> {
  const number = attempted.attempts + 1;
  const isLast = attempted.run >= settings.maxAttempts;
  return db.transaction().execute(async (trx) => {
    await trx
      .insertInto('delivery_attempts')
      .values({
        delivery_id: attempted.deliveryId,
        number,
        attempted_at: attempted.attemptedAt,
        duration_ms: outcome.durationMs,
        response_status: outcome.responseStatus,
        error: outcome.error,
      })
      .execute();
    const isPaused = await countOutcome(trx, settings, attempted, outcome);
    const status = statusAfter(outcome.isDelivered, isPaused, isLast);
    await trx
      .updateTable('deliveries')
      .set({ attempts: number, status, ...(outcome.isDelivered && { delivered_at: attempted.attemptedAt }) })
      .where('id', '=', attempted.deliveryId)
      .execute();
    return status;
  });
}

function statusAfter(isDelivered: boolean, isPaused: boolean, isLast: boolean): string {
  if (isDelivered) return 'Delivered';
  if (isPaused) return 'Held';
  return isLast ? 'Failed' : 'Pending';
}

/** Keeps the subscription's row of failures, and pauses it when the row is too long. True when it is paused now. */
async function countOutcome(
  db: Database,
  settings: DeliverySettings,
  attempted: Attempted,
  outcome: AttemptOutcome,
): Promise<boolean> {
  const ofSubscription = db.updateTable('subscriptions').where('id', '=', attempted.subscription_id);
  if (outcome.isDelivered) {
    await ofSubscription.set({ consecutive_failures: 0 }).where('consecutive_failures', '>', 0).execute();
    return false;
  }
  const { consecutive_failures: failures } = await ofSubscription
    .set((row) => ({ consecutive_failures: row('consecutive_failures', '+', 1) }))
    .returning('consecutive_failures')
    .executeTakeFirstOrThrow();
  // Standard Webhooks: 410 Gone says that the endpoint wants no more.
  const reason = outcome.responseStatus === 410 ? 'EndpointGone' : 'EndpointFailing';
  if (reason !== 'EndpointGone' && failures < settings.pauseAfterFailures) return false;
  await ofSubscription
    .set({ status: 'Paused', paused_reason: reason, updated_at: attempted.attemptedAt })
    .where('status', '=', 'Active')
    .execute();
  return true;
}
