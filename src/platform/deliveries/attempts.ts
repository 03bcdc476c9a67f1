import type { Database } from '../database/schema.ts';
import type { DeliverySettings } from '../settings.ts';
import type { AttemptOutcome } from './post.ts';

/** An attempt that was made, with what was known of its delivery and subscription before. */
export interface Attempted {
  readonly deliveryId: string;
  readonly subscription_id: string;
  /** Over all runs of all its jobs. */
  readonly attempts: number;
  /** Of this job: a redelivery starts at 1 again. */
  readonly run: number;
  readonly attemptedAt: Date;
  /** Of the subscription. */
  readonly consecutive_failures: number;
}

type DeliveryStatus = 'Delivered' | 'Held' | 'Failed' | 'Pending';

/** Logs the attempt, and gives the delivery's status after it; `Pending` is to be tried again. */
export async function logOutcome(
  db: Database,
  settings: DeliverySettings,
  attempted: Attempted,
  outcome: AttemptOutcome,
): Promise<DeliveryStatus> {
  if (outcome.isDelivered) {
    await logAttempt(db, attempted, outcome, 'Delivered');
    if (attempted.consecutive_failures > 0) await forgetFailures(db, attempted.subscription_id);
    return 'Delivered';
  }
  return db.transaction().execute(async (trx) => {
    const isPaused = await countFailure(trx, settings, attempted, outcome);
    const isLast = attempted.run >= settings.maxAttempts;
    const status = isPaused ? 'Held' : isLast ? 'Failed' : 'Pending';
    await logAttempt(trx, attempted, outcome, status);
    return status;
  });
}

/** One statement, so that a delivery that succeeds costs one round trip. */
async function logAttempt(
  db: Database,
  { deliveryId, attempts, attemptedAt }: Attempted,
  outcome: AttemptOutcome,
  status: DeliveryStatus,
): Promise<void> {
  const number = attempts + 1;
  const attempt = {
    delivery_id: deliveryId,
    number,
    attempted_at: attemptedAt,
    duration_ms: outcome.durationMs,
    response_status: outcome.responseStatus,
    error: outcome.error,
  };
  await db
    .with('logged', (query) => query.insertInto('delivery_attempts').values(attempt))
    .updateTable('deliveries')
    .set({ attempts: number, status, ...(status === 'Delivered' && { delivered_at: attemptedAt }) })
    .where('id', '=', deliveryId)
    .execute();
}

async function forgetFailures(db: Database, subscriptionId: string): Promise<void> {
  await db
    .updateTable('subscriptions')
    .set({ consecutive_failures: 0 })
    .where('id', '=', subscriptionId)
    .execute();
}

/** Counts a failed attempt, and pauses the subscription when there are too many in a row. True when it is paused now. */
async function countFailure(
  db: Database,
  settings: DeliverySettings,
  attempted: Attempted,
  outcome: AttemptOutcome,
): Promise<boolean> {
  const ofSubscription = db.updateTable('subscriptions').where('id', '=', attempted.subscription_id);
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
