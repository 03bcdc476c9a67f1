import { type Awaitable, andThen } from '../domain/awaitable.ts';
import type { Caller } from '../domain/caller.ts';
import type { BucketState, Charge, Decision, Store } from '../store/store.ts';
import type { Buckets, Plan } from './buckets.ts';
import { Refusal } from './problems.ts';
import type { Admitted, Charged, Operation } from './types.ts';

const US_PER_SECOND = 1_000_000;

/**
 * Spends the operation's points in every bucket of the caller, or in none. A store without an answer gives
 * `uncounted`: the request is served anyway (contract 8.1, `Service-RateLimit-Mode: degraded`). At once where the store
 * has not to be asked.
 */
export function charge(
  store: Store,
  buckets: Buckets,
  caller: Caller,
  { kind, personOnly, cost }: Operation,
): Awaitable<Charged> {
  const plan = buckets.planFor(caller, kind, personOnly);
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
      const { bucket, refusal } = refusalOf(plan, decision.buckets, cost);
      return {
        outcome: 'denied',
        policy,
        rateLimit: rateLimitHeader(plan, decision.buckets),
        bucket,
        refusal,
      };
    }
  }
}

function chargeOf(plan: Plan, cost: number): Charge {
  return { buckets: plan.buckets, cost, windowSeconds: plan.windowSeconds };
}

/**
 * RateLimit: the buckets that this request used, `t` rounded up so that no client comes back too early. A limit that
 * is only tried out is no client's business.
 */
function rateLimitHeader(plan: Plan, states: readonly BucketState[]): string {
  let header = '';
  for (let index = 0; index < states.length; index++) {
    if (plan.buckets[index]?.shadow) continue;
    const { remaining, resetAfterUs } = states[index] ?? NO_STATE;
    const separator = header === '' ? '"' : ', "';
    header += `${separator}${plan.headerNames[index]}";r=${remaining};t=${Math.ceil(resetAfterUs / US_PER_SECOND)}`;
  }
  return header;
}

/** A bucket with less than this share of its limit left is near its end. */
const NEAR_LIMIT_SHARE = 0.1;

/** What an owner wants to know of an admitted request: which buckets it nearly emptied, which shadows would refuse it. */
function remarks(plan: Plan, states: readonly BucketState[]): Pick<Admitted, 'nearLimit' | 'shadowDenied'> {
  let nearLimit: string[] | undefined;
  let shadowDenied: string[] | undefined;
  for (let index = 0; index < states.length; index++) {
    const { remaining, retryAfterUs } = states[index] ?? NO_STATE;
    const { limit, shadow } = plan.buckets[index] ?? NO_BUCKET;
    if (shadow && retryAfterUs > 0) shadowDenied = [...(shadowDenied ?? []), nameOf(plan, index)];
    else if (!shadow && remaining < limit * NEAR_LIMIT_SHARE)
      nearLimit = [...(nearLimit ?? []), nameOf(plan, index)];
  }
  return { nearLimit, shadowDenied };
}

const NO_BUCKET = { limit: 0, shadow: false };
const NO_STATE: BucketState = { remaining: 0, resetAfterUs: 0, retryAfterUs: 0 };

function nameOf(plan: Plan, index: number): string {
  return plan.bucketNames[index] ?? '';
}

/** The last refusal of each plan: those of a flood are all alike, and need not all be written anew. */
const lastRefusals = new WeakMap<Plan, { costPoints: number; seconds: number; named: NamedRefusal }>();

interface NamedRefusal {
  readonly bucket: string;
  readonly refusal: Refusal;
}

/** The 429 names the bucket that needs the longest wait. */
function refusalOf(plan: Plan, states: readonly BucketState[], costPoints: number): NamedRefusal {
  let index = 0;
  let longestUs = -1;
  for (let at = 0; at < states.length; at++) {
    const waitUs = plan.buckets[at]?.shadow ? 0 : (states[at] ?? NO_STATE).retryAfterUs;
    if (waitUs <= longestUs) continue;
    longestUs = waitUs;
    index = at;
  }
  const bucket = nameOf(plan, index);
  const seconds = Math.max(1, Math.ceil(longestUs / US_PER_SECOND));
  const last = lastRefusals.get(plan);
  if (last?.costPoints === costPoints && last.seconds === seconds && last.named.bucket === bucket) {
    return last.named;
  }
  const named = { bucket, refusal: refusalFor(plan, index, costPoints, seconds) };
  lastRefusals.set(plan, { costPoints, seconds, named });
  return named;
}

function refusalFor(plan: Plan, index: number, costPoints: number, seconds: number): Refusal {
  const bucket = nameOf(plan, index);
  const limit = plan.buckets[index]?.limit ?? 0;
  const { windowSeconds } = plan;
  return new Refusal(
    'RateLimitExceeded',
    `The ${bucket} bucket has no room for ${costPoints} more; it takes ${limit} points in ${windowSeconds} s.`,
    { extensions: { bucket, limit, windowSeconds, costPoints }, headers: { 'Retry-After': `${seconds}` } },
  );
}
