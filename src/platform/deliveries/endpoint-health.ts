import type { Database } from '../database/schema.ts';
import type { DeliverySettings } from '../settings.ts';
import type { Attempt } from './attempts.ts';
import { hastenDeliveries } from './queue.ts';

/** What a subscription remembers of its endpoint. */
export interface EndpointState {
  readonly status: string;
  readonly paused_reason: string | null;
  /** Since when no attempt has succeeded. */
  readonly failing_since: Date | null;
  /** When a delivery is tried although the subscription is paused. */
  readonly probe_at: Date | null;
}

type Result = 'delivered' | 'failed' | 'gone';

/**
 * The state after an attempt. 410 Gone pauses at once (Standard Webhooks), as the subscriber asks for it; any other
 * failure does after `pauseAfterSeconds` without a success, and the first probe that succeeds resumes.
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

/** Brings the subscriptions of these attempts to the state that follows from them. */
export async function recordHealth(
  db: Database,
  settings: DeliverySettings,
  attempts: readonly Attempt[],
  now: Date,
): Promise<void> {
  const results = new Map<string, Result[]>();
  for (const { delivery, outcome } of attempts) {
    // The log clears the failures of an active subscription whose endpoint answers.
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
      .forUpdate()
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
