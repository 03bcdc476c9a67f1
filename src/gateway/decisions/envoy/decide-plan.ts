import { randomUUID } from 'node:crypto';
import { type Awaitable, andThen, withinMs } from '../../../domain/awaitable.ts';
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

/** How long an answer waits for a refund, which is applied later if the store needs longer. */
const REFUND_MS = 2_000;

/**
 * Decides a plan, and gives back in all its buckets with negative hits, whatever is decided of the others. Those buckets have room.
 */
export function decidePlan(store: Store, plan: Plan): Awaitable<Decided> {
  const refunded = plan.buckets.filter(({ hits }) => hits < 0);
  return refunded.length === 0 ? decideCharges(store, plan) : decideWith(refunded, store, plan);
}

async function decideWith(refunded: readonly LimitedBucket[], store: Store, plan: Plan): Promise<Decided> {
  const charged = plan.buckets.filter(({ hits }) => hits >= 0);
  const deciding = decideCharges(store, { ...plan, buckets: charged });
  const states = await refund(store, refunded);
  const decided = await deciding;
  return {
    ...decided,
    states: plan.buckets.map((bucket) =>
      bucket.hits < 0 ? states[refunded.indexOf(bucket)] : decided.states[charged.indexOf(bucket)],
    ),
  };
}

/** Gives back the points that were charged first, as many as count, and once. Returns no states if the store does not answer in time. */
async function refund(store: Store, buckets: readonly LimitedBucket[]): Promise<Decided['states']> {
  const settled = await withinMs(
    Promise.resolve(
      store.settle({
        charge: { buckets, cost: 1 },
        chargedAtUs: undefined,
        cost: 0,
        refundsRequests: false,
        id: randomUUID(),
      }),
    ),
    REFUND_MS,
  );
  if (settled === undefined || settled.outcome === 'dropped') return [];
  return settled.buckets.map((state) => state && { ...state, retryAfterUs: 0 });
}

/**
 * Charges all buckets of a plan, or none. A plan that spends nothing in some of them, or whose limits in quota mode refuse together, is
 * looked at first: what has no room then spends nothing anywhere.
 */
function decideCharges(store: Store, plan: Plan): Awaitable<Decided> {
  const { buckets } = plan;
  const isBanned = plan.descriptors.some((one) => one.kind === 'banned' && one.limit.mode === 'enforced');
  const unknown = buckets.map(() => undefined);
  const isOverLimit = isBanned || isQuotaUsed(plan, unknown);
  if (isOverLimit || buckets.length === 0) return { isOverLimit, states: unknown };
  return andThen(isLookedAt(plan) ? peekFirst(store, plan) : spend(store, plan), (decided) =>
    spendRest(store, plan, decided),
  );
}

/** Whether a plan cannot be charged without a look at its buckets first. */
function isLookedAt({ buckets }: Plan): boolean {
  return buckets.some(({ hits, rule }) => hits === 0 || rule.mode === 'quota');
}

function spend(store: Store, plan: Plan): Awaitable<Decided> {
  return andThen(store.charge({ buckets: plan.buckets, cost: 1 }), (decision) => decidedBy(plan, decision));
}

/** What a look could not find out is charged too: each replica may count its part of the limits. */
async function peekFirst(store: Store, plan: Plan): Promise<Decided> {
  const { buckets } = plan;
  const seen = seenBy(plan, await store.peek({ buckets: buckets.map(asRefusing), cost: 1 }));
  const spent = buckets.filter(({ hits }) => hits !== 0);
  if (seen.isOverLimit || spent.length === 0) return seen;
  const decision = await store.charge({ buckets: spent, cost: 1 });
  if (decision.outcome === 'uncounted')
    return { ...decidedBy(plan, decision), states: fullQuotas(plan, seen) };
  return decidedBy(plan, spread(decision, plan, spent, seen));
}

/** A look asks as if a limit in quota mode refused: of a replica's part of a limit, the state is known only if the part refuses. */
function asRefusing(bucket: LimitedBucket): LimitedBucket {
  return bucket.rule.mode === 'quota' ? { ...bucket, shadow: false } : bucket;
}

function seenBy(plan: Plan, decision: Decision): Decided {
  const decided = decidedBy(plan, decision);
  const { states } = decided;
  const isRefused = plan.buckets.some(
    ({ rule }, index) => rule.mode === 'enforced' && hasNoRoom(states[index]),
  );
  return { ...decided, isOverLimit: isRefused || isQuotaUsed(plan, states) };
}

/** What is known of a request that was not counted: the limits in quota mode that have no room, which send no metadata. */
function fullQuotas({ buckets }: Plan, { states }: Decided): Decided['states'] {
  return states.map((state, index) =>
    buckets[index]?.rule.mode === 'quota' && hasNoRoom(state) ? state : undefined,
  );
}

/** Spends what is left where the rule says so and the hits did not fit. Another request may be first, and then nothing is spent. */
function spendRest(store: Store, { buckets }: Plan, decided: Decided): Awaitable<Decided> {
  const { states } = decided;
  if (!buckets.some(({ rule }) => rule.spendsRest)) return decided;
  const rests = buckets.flatMap((bucket, index) => {
    const left = states[index]?.remaining ?? 0;
    const isMeant = bucket.rule.spendsRest && bucket.hits !== 0 && hasNoRoom(states[index]);
    return isMeant && left > 0 ? [{ ...bucket, cost: left }] : [];
  });
  if (rests.length === 0) return decided;
  return andThen(store.charge({ buckets: rests, cost: 1 }), () => decided);
}

/** The decision on some of the buckets as one on all of them. */
function spread(
  decision: Exclude<Decision, { outcome: 'uncounted' }>,
  { buckets }: Plan,
  spent: readonly LimitedBucket[],
  seen: Decided,
): Decision {
  const states = buckets.map((bucket, index) =>
    bucket.hits === 0 ? seen.states[index] : decision.buckets[spent.indexOf(bucket)],
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
