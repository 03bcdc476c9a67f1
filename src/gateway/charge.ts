import { type Awaitable, andThen } from '../domain/awaitable.ts';
import type { Payer } from '../domain/caller.ts';
import { US_PER_SECOND } from '../domain/clock.ts';
import type { BucketState, Charge, Decision, Store } from '../store/store.ts';
import type { Buckets, Plan, PlannedBucket } from './buckets.ts';
import { Refusal } from './problems.ts';
import type { Admitted, Charged, NearLimit, Operation } from './request-context.ts';

/**
 * Spends the operation's points in every bucket of the payer, or in none. When the store does not answer, the result is
 * `uncounted` and the request is served anyway (contract 8.1, `Service-RateLimit-Mode: degraded`). Synchronous when the store
 * decides in memory.
 */
export function charge(
  store: Store,
  buckets: Buckets,
  payer: Payer,
  { kind, access, cost }: Operation,
): Awaitable<Charged> {
  const plan = buckets.planFor(payer, kind, access);
  return andThen(store.charge(chargeOf(plan, cost)), (decision) => chargedOf(plan, cost, decision));
}

function chargedOf(plan: Plan, cost: number, decision: Decision): Charged {
  const { policy } = plan;
  switch (decision.outcome) {
    case 'uncounted':
      return { outcome: 'uncounted', policy, reason: decision.reason };
    case 'admitted': {
      const { nearLimit, shadowDenied } = remarks(plan, decision.buckets);
      const rateLimit = rateLimitHeader(plan, decision.buckets);
      return { outcome: 'admitted', policy, rateLimit, nearLimit, shadowDenied };
    }
    case 'denied': {
      const { bucket, state } = longestWait(plan, decision.buckets);
      return {
        outcome: 'denied',
        policy,
        rateLimit: rateLimitHeader(plan, decision.buckets),
        bucket: bucket.name,
        limit: bucket.limit,
        windowSeconds: plan.windowSeconds,
        remaining: state.remaining,
        retryAfterUs: state.retryAfterUs,
        refusal: refusalOf(plan, bucket, state.retryAfterUs, cost),
      };
    }
  }
}

function chargeOf(plan: Plan, cost: number): Charge {
  return { buckets: plan.buckets, cost, windowSeconds: plan.windowSeconds };
}

/** Calls `visit` with each bucket of the plan and its state after the decision. Throws where a state is missing. */
function forEachState(
  { buckets }: Plan,
  states: readonly BucketState[],
  visit: (bucket: PlannedBucket, state: BucketState) => void,
): void {
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index];
    const state = states[index];
    if (bucket === undefined || state === undefined)
      throw new TypeError('the store gave too few bucket states');
    visit(bucket, state);
  }
}

/** RateLimit: the buckets that this request used, shadow limits excepted; `t` is rounded up so that clients wait long enough. */
function rateLimitHeader(plan: Plan, states: readonly BucketState[]): string {
  let header = '';
  forEachState(plan, states, ({ headerName, shadow }, { remaining, resetAfterUs }) => {
    if (shadow) return;
    const separator = header === '' ? '"' : ', "';
    header += `${separator}${headerName}";r=${remaining};t=${Math.ceil(resetAfterUs / US_PER_SECOND)}`;
  });
  return header;
}

/** A bucket with less than this share of its limit left is near its limit. */
const NEAR_LIMIT_SHARE = 0.1;

/** Which buckets an admitted request nearly emptied, and which shadow limits would have refused it. */
function remarks(plan: Plan, states: readonly BucketState[]): Pick<Admitted, 'nearLimit' | 'shadowDenied'> {
  const { windowSeconds } = plan;
  let nearLimit: NearLimit[] | undefined;
  let shadowDenied: string[] | undefined;
  forEachState(plan, states, ({ name, limit, shadow }, { remaining, retryAfterUs }) => {
    if (shadow && retryAfterUs > 0) shadowDenied = [...(shadowDenied ?? []), name];
    else if (!shadow && remaining < limit * NEAR_LIMIT_SHARE) {
      nearLimit ??= [];
      nearLimit.push({ bucket: name, limit, windowSeconds, remaining });
    }
  });
  return { nearLimit, shadowDenied };
}

/** The bucket that needs the longest wait, which the 429 names. */
function longestWait(
  plan: Plan,
  states: readonly BucketState[],
): { bucket: PlannedBucket; state: BucketState } {
  let longest: { bucket: PlannedBucket; state: BucketState } | undefined;
  forEachState(plan, states, (bucket, state) => {
    if (!bucket.shadow && state.retryAfterUs > (longest?.state.retryAfterUs ?? -1))
      longest = { bucket, state };
  });
  if (longest === undefined) throw new TypeError('the store refused a charge that no bucket can refuse');
  return longest;
}

/** The last refusal of each plan. In a flood all refusals are the same, so they are built once. */
const lastRefusals = new WeakMap<Plan, LastRefusal>();

interface LastRefusal {
  readonly bucket: PlannedBucket;
  readonly costPoints: number;
  readonly seconds: number;
  readonly refusal: Refusal;
}

function refusalOf(plan: Plan, bucket: PlannedBucket, waitUs: number, costPoints: number): Refusal {
  const seconds = Math.max(1, Math.ceil(waitUs / US_PER_SECOND));
  const last = lastRefusals.get(plan);
  if (last?.costPoints === costPoints && last.seconds === seconds && last.bucket === bucket) {
    return last.refusal;
  }
  const refusal = refusalFor(bucket, plan.windowSeconds, costPoints, seconds);
  lastRefusals.set(plan, { bucket, costPoints, seconds, refusal });
  return refusal;
}

function refusalFor(
  { name, limit }: PlannedBucket,
  windowSeconds: number,
  costPoints: number,
  seconds: number,
): Refusal {
  return new Refusal(
    'RateLimitExceeded',
    `The ${name} bucket has no room for ${costPoints} more; it takes ${limit} points in ${windowSeconds} s.`,
    {
      extensions: { bucket: name, limit, windowSeconds, costPoints },
      headers: { 'Retry-After': `${seconds}` },
    },
  );
}
