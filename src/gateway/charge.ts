import type { BucketState, Charge, Store } from '../store/store.ts';
import type { Buckets, Plan } from './buckets.ts';
import { Refusal } from './problems.ts';
import type { Admitted, Caller, Charged, Operation } from './types.ts';

const US_PER_SECOND = 1_000_000;

/**
 * Spends the operation's points in every bucket of the caller, or in none. A store without an answer gives
 * `uncounted`: the request is served anyway (contract 8.1, `Service-RateLimit-Mode: degraded`).
 */
export async function charge(
  store: Store,
  buckets: Buckets,
  caller: Caller,
  operation: Operation,
): Promise<Charged> {
  const plan = buckets.planFor(caller, operation.kind, operation.personOnly);
  const decision = await store.charge(chargeOf(plan, operation.cost));
  const { policy } = plan;
  switch (decision.outcome) {
    case 'uncounted':
      return { outcome: 'uncounted', policy, reason: decision.reason };
    case 'admitted':
      return {
        outcome: 'admitted',
        policy,
        rateLimit: rateLimitHeader(plan, decision.buckets),
        ...remarks(plan, decision.buckets),
      };
    case 'denied': {
      const rateLimit = rateLimitHeader(plan, decision.buckets);
      return { outcome: 'denied', policy, rateLimit, ...refusalOf(plan, decision.buckets, operation.cost) };
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
  for (const [index, { remaining, resetAfterUs }] of states.entries()) {
    if (plan.buckets[index]?.shadow) continue;
    const separator = header === '' ? '' : ', ';
    header += `${separator}"${plan.headerNames[index]}";r=${remaining};t=${Math.ceil(resetAfterUs / US_PER_SECOND)}`;
  }
  return header;
}

/** A bucket with less than this share of its limit left is near its end. */
const NEAR_LIMIT_SHARE = 0.1;

/** What an owner wants to know of an admitted request: which buckets it nearly emptied, which shadows would refuse it. */
function remarks(plan: Plan, states: readonly BucketState[]): Pick<Admitted, 'nearLimit' | 'shadowDenied'> {
  let nearLimit: string[] | undefined;
  let shadowDenied: string[] | undefined;
  for (const [index, { remaining, retryAfterUs }] of states.entries()) {
    const { limit, shadow } = plan.buckets[index] ?? NO_BUCKET;
    if (shadow && retryAfterUs > 0) shadowDenied = [...(shadowDenied ?? []), nameOf(plan, index)];
    else if (!shadow && remaining < limit * NEAR_LIMIT_SHARE)
      nearLimit = [...(nearLimit ?? []), nameOf(plan, index)];
  }
  return { nearLimit, shadowDenied };
}

const NO_BUCKET = { limit: 0, shadow: false };

function nameOf(plan: Plan, index: number): string {
  return plan.bucketNames[index] ?? '';
}

/** The 429 names the bucket that needs the longest wait. */
function refusalOf(
  plan: Plan,
  states: readonly BucketState[],
  costPoints: number,
): { bucket: string; refusal: Refusal } {
  const waits = states.map((state, at) => (plan.buckets[at]?.shadow ? 0 : state.retryAfterUs));
  const longestUs = Math.max(...waits);
  const index = waits.indexOf(longestUs);
  const bucket = plan.bucketNames[index] ?? '';
  const limit = plan.buckets[index]?.limit ?? 0;
  const { windowSeconds } = plan;
  const seconds = Math.max(1, Math.ceil(longestUs / US_PER_SECOND));
  const refusal = new Refusal(
    'RateLimitExceeded',
    `The ${bucket} bucket has no room for ${costPoints} more; it takes ${limit} points in ${windowSeconds} s.`,
    { extensions: { bucket, limit, windowSeconds, costPoints }, headers: { 'Retry-After': `${seconds}` } },
  );
  return { bucket, refusal };
}
