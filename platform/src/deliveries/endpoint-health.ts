import type { Database } from '../database/schema.ts';
import type { DeliverySettings } from '../settings.ts';
import type { Attempt } from './attempts.ts';
import { hastenDeliveries } from './queue.ts';

/** The health of a subscription's endpoint. */
export interface EndpointState {
  readonly status: string;
  readonly paused_reason: string | null;
  /** Time of the first failure since the last success. */
  readonly failing_since: Date | null;
  /** When one delivery is attempted although the subscription is paused. */
  readonly probe_at: Date | null;
}

type Result = 'delivered' | 'failed' | 'gone';

/**
 * The state after an attempt. A 410 Gone pauses the subscription immediately (Standard Webhooks). Any other failure
 * pauses it after `pauseAfterSeconds` without a success. The first successful probe resumes it.
 */
export function nextState(
  state: EndpointState,
  result: Result,
  at: Date,
  { pauseAfterSeconds, probeSeconds }: Pick<DeliverySettings, 'pauseAfterSeconds' | 'probeSeconds'>,
): EndpointState {
  const isPausedByFailure = state.paused_reason === 'EndpointFailing';
  if (result === 'delivered') {
    const resumed = { ...state, failing_since: null };
    return isPausedByFailure
      ? { ...resumed, status: 'Active', paused_reason: null, probe_at: null }
      : resumed;
  }
  const failing_since = state.failing_since ?? at;
  const isToStay = state.status !== 'Active' && !isPausedByFailure;
  if (isToStay) return { ...state, failing_since };
  if (result === 'gone')
    return { status: 'Paused', paused_reason: 'EndpointGone', failing_since, probe_at: null };
  const isOverdue = at.getTime() - failing_since.getTime() >= pauseAfterSeconds * 1000;
  if (!isOverdue && !isPausedByFailure) return { ...state, failing_since };
  const probe_at = new Date(at.getTime() + probeSeconds * 1000);
  return { status: 'Paused', paused_reason: 'EndpointFailing', failing_since, probe_at };
}

/** Updates the health of the subscriptions of these attempts. */
export async function recordHealth(
  db: Database,
  settings: DeliverySettings,
  attempts: readonly Attempt[],
  now: Date,
): Promise<void> {
  const results = new Map<string, Result[]>();
  for (const { delivery, outcome } of attempts) {
    // logAttempts clears `failing_since` of an active subscription after a success.
    if (outcome.isDelivered && !delivery.isProbe) continue;
    const failed = outcome.responseStatus === 410 ? 'gone' : 'failed';
    const ofSubscription = results.get(delivery.subscriptionId) ?? [];
    results.set(delivery.subscriptionId, [...ofSubscription, outcome.isDelivered ? 'delivered' : failed]);
  }
  for (const [id, ofSubscription] of results) await change(db, id, ofSubscription, settings, now);
}

function change(db: Database, id: string, results: readonly Result[], settings: DeliverySettings, now: Date) {
  return db.transaction().execute(async (trx) => {
    const before = await trx
      .selectFrom('subscriptions')
      .select(['status', 'paused_reason', 'failing_since', 'probe_at'])
      .where('id', '=', id)
      // Compatible with the locks of those who queue deliveries.
      .forNoKeyUpdate()
      .executeTakeFirst();
    if (!before) return;
    const after = results.reduce<EndpointState>(
      (state, result) => nextState(state, result, now, settings),
      before,
    );
    const isMoved = after.status !== before.status;
    await trx
      .updateTable('subscriptions')
      .set({ ...after, ...(isMoved && { updated_at: now }) })
      .where('id', '=', id)
      .execute();
    if (isMoved && after.status === 'Active') await hastenDeliveries(trx, id, now);
  });
}
