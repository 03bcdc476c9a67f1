import { type Awaitable, andThen } from '../domain/awaitable.ts';
import type { Payer } from '../domain/caller.ts';
import { US_PER_SECOND } from '../domain/clock.ts';
import { Refusal } from '../domain/problems.ts';
import type { BucketState, Charge, Decision, Store } from '../store/store.ts';
import type { Buckets, Plan, PlannedBucket } from './buckets.ts';
import { limitText } from './limit-text.ts';
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
  asker: ChargeAsker = {},
): Awaitable<Charged> {
  const plan = buckets.planFor(payer, kind, access);
  const asked = chargeOf(plan, cost);
  return andThen(asker.isPeek === true ? store.peek(asked) : store.charge(asked), (decision) => {
    asker.takeDecision?.(plan, decision);
    return chargedOf(plan, cost, decision);
  });
}

/** Who asks for a charge, and wants more of it, or less, than a client's request. */
export interface ChargeAsker {
  /** Finds out what a charge would do, and spends nothing. */
  readonly isPeek?: boolean;
  /** Gets what was decided on each bucket of the plan. */
  takeDecision?(plan: Plan, decision: Decision): void;
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
        windowSeconds: bucket.windowSeconds,
        remaining: state.remaining,
        retryAfterUs: state.retryAfterUs,
        refusal: refusalOf(plan, bucket, state, cost),
      };
    }
  }
}

function chargeOf(plan: Plan, cost: number): Charge {
  return { buckets: plan.buckets, cost };
}

/** Calls `visit` with each bucket of the plan whose state after the decision is known. */
function forEachState(
  { buckets }: Plan,
  states: readonly (BucketState | undefined)[],
  visit: (bucket: PlannedBucket, state: BucketState) => void,
): void {
  if (states.length < buckets.length) throw new TypeError('the store gave too few bucket states');
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index];
    const state = states[index];
    if (bucket !== undefined && state !== undefined) visit(bucket, state);
  }
}

/** RateLimit: the buckets that this request used, shadow limits excepted; `t` is rounded up so that clients wait long enough. */
function rateLimitHeader(plan: Plan, states: readonly (BucketState | undefined)[]): string {
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
  let nearLimit: NearLimit[] | undefined;
  let shadowDenied: string[] | undefined;
  forEachState(plan, states, ({ name, limit, windowSeconds, shadow }, { remaining, retryAfterUs }) => {
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
  states: readonly (BucketState | undefined)[],
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
  readonly remaining: number;
  readonly seconds: number;
  readonly refusal: Refusal;
}

function refusalOf(plan: Plan, bucket: PlannedBucket, state: BucketState, costPoints: number): Refusal {
  const { remaining } = state;
  const seconds = Math.max(1, Math.ceil(state.retryAfterUs / US_PER_SECOND));
  const last = lastRefusals.get(plan);
  const isSame = last?.costPoints === costPoints && last.seconds === seconds && last.remaining === remaining;
  if (isSame && last.bucket === bucket) return last.refusal;
  const { name, limit, windowSeconds } = bucket;
  const refusal = new Refusal('RateLimitExceeded', limitText(bucket, remaining, costPoints, seconds), {
    extensions: { bucket: name, limit, windowSeconds, costPoints },
    headers: { 'Retry-After': `${seconds}` },
  });
  lastRefusals.set(plan, { bucket, costPoints, remaining, seconds, refusal });
  return refusal;
}
