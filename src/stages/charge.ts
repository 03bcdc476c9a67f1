import { type Awaitable, andThenWith } from '../domain/awaitable.ts';
import type { Payer } from '../domain/caller.ts';
import { US_PER_SECOND } from '../domain/clock.ts';
import { NEAR_LIMIT_SHARE } from '../domain/limits/rows.ts';
import { Refusal } from '../domain/problems.ts';
import { Hold } from '../store/in-flight/held-slots.ts';
import { type BucketState, type Charge, costIn, type Decision, type Store } from '../store/store.ts';
import type { Buckets, PayerBuckets } from './buckets/buckets.ts';
import { limitText } from './buckets/limit-text.ts';
import {
  fillingOf,
  forEachState,
  type LimitLeft,
  namedLimit,
  type PayerBucket,
} from './buckets/payer-bucket.ts';
import { onlyThose, rateLimitFields, violatedPolicies } from './buckets/rate-limit-fields.ts';
import { bucketsOfSeveral } from './buckets/several-operations.ts';
import { LastPayer } from './last-payer.ts';
import type { Charged, Operation, RequestContext } from './request-context.ts';

const TOO_MANY_MEANINGS = new Refusal(
  'BadRequest',
  'The path may mean several operations, which have too many limits together.',
);

/**
 * Spends the operation's points in every bucket of the payer, or in none. When the store does not answer, the result is
 * `uncounted` and the request is served anyway (contract 8.1, `Service-RateLimit-Mode: degraded`), or refused by this replica's part of
 * a limit. Synchronous when the store decides in memory. A refusal if the path may mean so many operations that no store can charge all.
 */
export function charge(
  request: RequestContext,
  payer: Payer,
  operation: Operation,
  { store, buckets }: ChargeDependencies,
): Awaitable<Charged | Refusal> {
  const { source, seesEnd } = request;
  const last = source.peer && LastPayer.of(source.peer);
  const all = buckets.bucketsFor(payer, operation, last);
  const { heldMs } = source;
  const named = onlyNamed(seesEnd || heldMs !== undefined ? all : (all.endless ?? all), source.askedLimits);
  const cost = request.reserved ?? operation.cost;
  // A cost that a program names is refused if it is above a limit.
  const costOfSeveral = source.askedCost === undefined ? cost : undefined;
  const due = operation.also === undefined ? named : bucketsOfSeveral(named, costOfSeveral);
  if (due === undefined) return TOO_MANY_MEANINGS;
  const hold = due.endless === undefined || heldMs !== undefined ? undefined : new Hold();
  request.hold = hold;
  const asked = {
    buckets: due.buckets,
    kind: due.kind,
    cost,
    operation: operation.id,
    hold,
    heldMs,
  };
  const decision = source.isPeek === true ? store.peek(asked) : store.charge(asked);
  return andThenWith(decision, chargedBy, { request, store, due, asked, buckets });
}

interface ChargeDependencies {
  readonly store: Store;
  readonly buckets: Pick<Buckets, 'bucketsFor' | 'fields' | 'lastRefusals'>;
}

/** A charge that a store decides. */
interface Deciding extends ChargeDependencies {
  readonly request: RequestContext;
  readonly due: PayerBuckets;
  readonly asked: Charge;
}

function chargedBy(decision: Decision, { request, store, due, asked, buckets }: Deciding): Charged {
  request.due = due;
  request.decision = decision;
  request.asked = asked;
  // It is most likely served, so it counts here until it ends. What a part of the limits has admitted counts already.
  if (decision.outcome === 'uncounted') store.slots.take(asked);
  return chargedOf(due, asked, decision, buckets);
}

function onlyNamed(due: PayerBuckets, names: readonly string[] | undefined): PayerBuckets {
  if (names === undefined) return due;
  return { ...onlyThose(due, ({ name }) => names.includes(name)), kind: undefined };
}

function chargedOf(
  due: PayerBuckets,
  { cost, heldMs }: Charge,
  decision: Decision,
  { fields, lastRefusals }: ChargeDependencies['buckets'],
): Charged {
  const { plan, unknownPlan } = due;
  if (decision.outcome === 'uncounted') {
    const { policy } = due;
    return { outcome: 'uncounted', policy, plan, unknownPlan, reason: decision.reason };
  }
  const { policy, rateLimit } = rateLimitFields(due, decision.buckets);
  if (decision.outcome === 'admitted') {
    const { nearLimit, shadowDenied } = remarks(due, decision.buckets);
    const states = heldMs === undefined ? decision.buckets : beforeHold(due.buckets, decision.buckets, cost);
    const filling = fillingOf(due.buckets, states);
    return { outcome: 'admitted', policy, rateLimit, plan, unknownPlan, nearLimit, shadowDenied, filling };
  }
  const { degraded } = decision;
  const { bucket, state } = longestWait(due, decision.buckets);
  const violated = fields === 'draft' ? violatedPolicies(due.buckets, decision.buckets) : undefined;
  return {
    outcome: 'denied',
    policy,
    rateLimit,
    plan,
    unknownPlan,
    ...namedLimit(bucket),
    owner: bucket.owner,
    remaining: state.remaining,
    retryAfterUs: state.retryAfterUs,
    refusal: refusalOf(lastRefusals, {
      bucket,
      state,
      costPoints: cost,
      isPart: degraded !== undefined,
      violated,
    }),
    degraded,
    // A part of a limit is not the limit.
    filling: degraded === undefined ? fillingOf(due.buckets, decision.buckets) : undefined,
  };
}

/** Without the points of a decision that a program holds: what it has cost shows when the next one is made. */
function beforeHold(buckets: readonly PayerBucket[], states: readonly BucketState[], cost: number) {
  return states.map((state, index) => {
    const bucket = buckets[index];
    if (bucket?.counts !== 'points') return state;
    return { ...state, remaining: Math.min(bucket.limit, state.remaining + costIn(bucket, cost)) };
  });
}

/** Which buckets an admitted request nearly emptied, and which shadow limits would have refused it. */
interface Remarks {
  nearLimit: LimitLeft[] | undefined;
  shadowDenied: string[] | undefined;
}

function remarks(due: PayerBuckets, states: readonly BucketState[]): Remarks {
  const none: Remarks = { nearLimit: undefined, shadowDenied: undefined };
  return forEachState(due.buckets, states, addRemark, none);
}

function addRemark(bucket: PayerBucket, { remaining, retryAfterUs }: BucketState, remarked: Remarks): void {
  if (bucket.shadow && retryAfterUs > 0) {
    remarked.shadowDenied ??= [];
    remarked.shadowDenied.push(bucket.name);
  } else if (!bucket.shadow && remaining < bucket.limit * NEAR_LIMIT_SHARE) {
    remarked.nearLimit ??= [];
    remarked.nearLimit.push({ owner: bucket.owner, ...namedLimit(bucket), remaining });
  }
}

/** The bucket that needs the longest wait, which the 429 names. */
function longestWait(
  due: PayerBuckets,
  states: readonly (BucketState | undefined)[],
): { bucket: PayerBucket; state: BucketState } {
  const none: { longest: { bucket: PayerBucket; state: BucketState } | undefined } = { longest: undefined };
  const { longest } = forEachState(due.buckets, states, keepLonger, none);
  if (longest === undefined) throw new TypeError('the store refused a charge that no bucket can refuse');
  return longest;
}

function keepLonger(
  bucket: PayerBucket,
  state: BucketState,
  found: { longest: { bucket: PayerBucket; state: BucketState } | undefined },
): void {
  if (!bucket.shadow && state.retryAfterUs > (found.longest?.state.retryAfterUs ?? -1))
    found.longest = { bucket, state };
}

/** The bucket that a charge is refused by. */
interface RefusingBucket {
  readonly bucket: PayerBucket;
  readonly state: BucketState;
  readonly costPoints: number;
  /** Whether it is this replica's part of the limit that has no room. */
  readonly isPart: boolean;
  /** The names of all limits that have no room; undefined with the fields of the contract. */
  readonly violated: readonly string[] | undefined;
}

function refusalOf(lastRefusals: Buckets['lastRefusals'], denied: RefusingBucket): Refusal {
  const { bucket, state, costPoints, isPart } = denied;
  const { remaining } = state;
  const seconds = Math.max(1, Math.ceil(state.retryAfterUs / US_PER_SECOND));
  const violated = denied.violated?.join() ?? '';
  const { alike = bucket } = bucket;
  const last = lastRefusals.get(bucket.key);
  const isSame = last?.costPoints === costPoints && last.seconds === seconds && last.remaining === remaining;
  if (isSame && last.bucket === alike && last.isPart === isPart && last.violated === violated)
    return last.refusal;
  const text = limitText(bucket, remaining, costPoints, seconds, isPart);
  const named = { ...namedLimit(bucket), costPoints };
  const refusal = new Refusal('RateLimitExceeded', text, {
    extensions: denied.violated === undefined ? named : { ...named, 'violated-policies': denied.violated },
    headers: { 'Retry-After': `${seconds}` },
  });
  lastRefusals.set(bucket.key, { bucket: alike, isPart, costPoints, remaining, seconds, violated, refusal });
  return refusal;
}
