import type { Database } from '../database/schema.ts';
import type { DeliverySettings } from '../settings.ts';
import type { Attempt } from './attempts.ts';
import { hastenDeliveries, hastenProbe } from './queue.ts';

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

/** What an attempt says about the endpoint that it was sent to. */
interface EndpointResult {
  readonly url: string;
  readonly result: Result;
}

/** Updates the health of the subscriptions of these attempts. A subscription with another URL by now stays as it is. */
export async function recordHealth(
  db: Database,
  settings: DeliverySettings,
  attempts: readonly Attempt[],
  now: Date,
): Promise<void> {
  const results = new Map<string, EndpointResult[]>();
  for (const { delivery, outcome } of attempts) {
    // logAttempts clears `failing_since` of an active subscription after a success.
    if (outcome.isDelivered && !delivery.isProbe) continue;
    const failed = outcome.responseStatus === 410 ? 'gone' : 'failed';
    const ofSubscription = results.get(delivery.subscriptionId) ?? [];
    ofSubscription.push({ url: delivery.url, result: outcome.isDelivered ? 'delivered' : failed });
    results.set(delivery.subscriptionId, ofSubscription);
  }
  for (const [id, ofSubscription] of results) await change(db, id, ofSubscription, settings, now);
}

function change(
  db: Database,
  id: string,
  results: readonly EndpointResult[],
  settings: DeliverySettings,
  now: Date,
) {
  return db.transaction().execute(async (trx) => {
    const before = await trx
      .selectFrom('subscriptions')
      .select(['url', 'status', 'paused_reason', 'failing_since', 'probe_at'])
      .where('id', '=', id)
      // Compatible with the locks of those who queue deliveries.
      .forNoKeyUpdate()
      .executeTakeFirst();
    if (!before) return;
    const { url, ...state } = before;
    const after = results
      .filter((one) => one.url === url)
      .reduce<EndpointState>((earlier, { result }) => nextState(earlier, result, now, settings), state);
    const isMoved = after.status !== state.status;
    await trx
      .updateTable('subscriptions')
      .set({ ...after, ...(isMoved && { updated_at: now }) })
      .where('id', '=', id)
      .execute();
    if (isMoved && after.status === 'Active') await hastenDeliveries(trx, id, now);
    // All of its deliveries may wait hours for their retries.
    if (after.probe_at !== null) await hastenProbe(trx, id, now);
  });
}
