import { type Awaitable, andThen } from '../../../domain/awaitable.ts';
import type { BucketState, Decision, Store, UncountedReason } from '../../../store/store.ts';
import type { LimitedBucket, Plan } from './plan.ts';

/** What was decided of a plan. */
export interface Decided {
  readonly isOverLimit: boolean;
  /** Of each bucket of the plan; undefined where it is not known. */
  readonly states: readonly (BucketState | undefined)[];
  /** Why the store did not decide. */
  readonly degraded?: UncountedReason | undefined;
}

/**
 * Charges all buckets of a plan, or none. A plan that spends nothing in some of them, or whose limits in quota mode refuse together, is
 * looked at first: what has no room then spends nothing anywhere.
 */
export function decidePlan(store: Store, plan: Plan): Awaitable<Decided> {
  const { buckets } = plan;
  const isBanned = plan.descriptors.some((one) => one.kind === 'banned' && one.limit.mode === 'enforced');
  const unknown = buckets.map(() => undefined);
  if (isBanned || buckets.length === 0)
    return { isOverLimit: isBanned || isQuotaUsed(plan, unknown), states: unknown };
  if (!buckets.some(({ isPeek, rule }) => isPeek || rule.mode === 'quota'))
    return andThen(store.charge({ buckets, cost: 1 }), (decision) => decidedBy(plan, decision));
  return store.peek({ buckets, cost: 1 }).then((decision) => {
    const seen = decidedBy(plan, decision);
    const spent = buckets.filter(({ isPeek }) => !isPeek);
    if (seen.isOverLimit || seen.degraded !== undefined || spent.length === 0) return seen;
    return andThen(store.charge({ buckets: spent, cost: 1 }), (spending) =>
      decidedBy(plan, spread(spending, plan, spent, seen)),
    );
  });
}

/** The decision on some of the buckets as one on all of them. */
function spread(
  decision: Decision,
  { buckets }: Plan,
  spent: readonly LimitedBucket[],
  seen: Decided,
): Decision {
  if (decision.outcome === 'uncounted') return decision;
  const states = buckets.map((bucket, index) =>
    bucket.isPeek ? seen.states[index] : decision.buckets[spent.indexOf(bucket)],
  );
  return { ...decision, buckets: states } as Decision;
}

function decidedBy(plan: Plan, decision: Decision): Decided {
  if (decision.outcome === 'uncounted')
    return { isOverLimit: false, states: plan.buckets.map(() => undefined), degraded: decision.reason };
  const { buckets: states } = decision;
  const isOverLimit = decision.outcome === 'denied' || isQuotaUsed(plan, states);
  return { isOverLimit, states, degraded: decision.outcome === 'denied' ? decision.degraded : undefined };
}

/** Whether none of the limits in quota mode has room, of which there is at least one. */
function isQuotaUsed({ descriptors, buckets }: Plan, states: Decided['states']): boolean {
  const banned = descriptors.some((one) => one.kind === 'banned' && one.limit.mode === 'quota');
  const inQuota = [...buckets.keys()].filter((index) => buckets[index]?.rule.mode === 'quota');
  return (banned || inQuota.length > 0) && inQuota.every((index) => hasNoRoom(states[index]));
}

export function hasNoRoom(state: BucketState | undefined): boolean {
  return state !== undefined && state.retryAfterUs > 0;
}
