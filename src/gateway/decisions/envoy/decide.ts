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
  return andThen(isLookedAt(plan) ? peekFirst(store, plan) : spend(store, plan), (decided) =>
    spendRest(store, plan, decided),
  );
}

/** Whether a plan cannot be charged without a look at its buckets first. */
function isLookedAt({ buckets }: Plan): boolean {
  return buckets.some(({ isPeek, rule }) => isPeek || rule.mode === 'quota');
}

function spend(store: Store, plan: Plan): Awaitable<Decided> {
  return andThen(store.charge({ buckets: plan.buckets, cost: 1 }), (decision) => decidedBy(plan, decision));
}

async function peekFirst(store: Store, plan: Plan): Promise<Decided> {
  const { buckets } = plan;
  const seen = decidedBy(plan, await store.peek({ buckets, cost: 1 }));
  const spent = buckets.filter(({ isPeek }) => !isPeek);
  if (seen.isOverLimit || seen.degraded !== undefined || spent.length === 0) return seen;
  const decision = await store.charge({ buckets: spent, cost: 1 });
  return decidedBy(plan, spread(decision, plan, spent, seen));
}

/** Spends what is left where the rule says so and the hits did not fit. Another request may be first, and then nothing is spent. */
function spendRest(store: Store, { buckets }: Plan, decided: Decided): Awaitable<Decided> {
  const { states, degraded } = decided;
  if (degraded !== undefined || !buckets.some(({ rule }) => rule.spendsRest)) return decided;
  const rests = buckets.flatMap((bucket, index) => {
    const left = states[index]?.remaining ?? 0;
    const isMeant = bucket.rule.spendsRest && !bucket.isPeek && hasNoRoom(states[index]);
    return isMeant && left > 0 ? [{ ...bucket, cost: left }] : [];
  });
  if (rests.length === 0) return decided;
  return andThen(store.charge({ buckets: rests, cost: 1 }), () => decided);
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

/** Whether there are limits in quota mode, and none of them has room. */
function isQuotaUsed({ descriptors, buckets }: Plan, states: Decided['states']): boolean {
  let isInQuota = descriptors.some((one) => one.kind === 'banned' && one.limit.mode === 'quota');
  for (let index = 0; index < buckets.length; index++) {
    if (buckets[index]?.rule.mode !== 'quota') continue;
    if (!hasNoRoom(states[index])) return false;
    isInQuota = true;
  }
  return isInQuota;
}

export function hasNoRoom(state: BucketState | undefined): boolean {
  return state !== undefined && state.retryAfterUs > 0;
}
