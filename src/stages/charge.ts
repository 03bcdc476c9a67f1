import { type Awaitable, andThenWith } from '../domain/awaitable.ts';
import type { Payer } from '../domain/caller.ts';
import { US_PER_SECOND } from '../domain/clock.ts';
import { NEAR_LIMIT_SHARE } from '../domain/limits/rows.ts';
import { Refusal } from '../domain/problems.ts';
import { Hold } from '../store/in-flight/held-slots.ts';
import type { BucketState, Charge, Decision, Store } from '../store/store.ts';
import type { Buckets, PayerBuckets } from './buckets/buckets.ts';
import { fillingOf } from './buckets/filling.ts';
import { limitText } from './buckets/limit-text.ts';
import { forEachState, namedLimit, type PayerBucket } from './buckets/payer-bucket.ts';
import { onlyThose, rateLimitFields } from './buckets/rate-limit-fields.ts';
import type { LastPayer } from './last-payer.ts';
import type { Charged, NearLimit, Operation } from './request-context.ts';

/**
 * Spends the operation's points in every bucket of the payer, or in none. When the store does not answer, the result is
 * `uncounted` and the request is served anyway (contract 8.1, `Service-RateLimit-Mode: degraded`), or refused by this replica's part of
 * a limit. Synchronous when the store decides in memory.
 */
export function charge(
  store: Store,
  buckets: Pick<Buckets, 'bucketsFor'>,
  payer: Payer,
  operation: Operation,
  asker: ChargeAsker = {},
): Awaitable<Charged> {
  const all = buckets.bucketsFor(payer, operation, asker.lastPayer);
  const due = onlyNamed(asker.seesEnd === true ? all : (all.endless ?? all), asker.askedLimits);
  const { cost } = operation;
  const asked = { buckets: due.buckets, cost, hold: holdFor(due, asker) };
  const decision = asker.isPeek === true ? store.peek(asked) : store.charge(asked);
  return andThenWith(decision, chargedBy, { store, due, asked, asker });
}

/** A charge that a store decides. */
interface Deciding {
  readonly store: Store;
  readonly due: PayerBuckets;
  readonly asked: Charge;
  readonly asker: ChargeAsker;
}

function chargedBy(decision: Decision, { store, due, asked, asker }: Deciding): Charged {
  asker.takeDecision?.(due, decision);
  // It is most likely served, so it counts here until it ends; those that a part of the limits has admitted count already.
  if (decision.outcome === 'uncounted') store.slots.take(asked);
  return chargedOf(due, asked.cost, decision);
}

function holdFor({ endless }: PayerBuckets, asker: ChargeAsker): Hold | undefined {
  if (endless !== undefined) asker.hold = new Hold();
  return asker.hold;
}

/** Who asks for a charge, and wants more of it, or less, than a client's request. */
export interface ChargeAsker {
  /** Finds out what a charge would do, and spends nothing. */
  readonly isPeek?: boolean;
  /** The names of the limits to charge, in place of all; each is one of this request. */
  readonly askedLimits?: readonly string[] | undefined;
  /** Whether whoever asks ends the hold when the request has ended. Without that, limits on concurrent requests do not apply. */
  readonly seesEnd?: boolean;
  /** Whom the last request of the connection was charged to. */
  readonly lastPayer?: LastPayer;
  /** What the request holds until it ends; set if limits on concurrent requests apply to it. */
  hold?: Hold | undefined;
  /** Gets what was decided on each of the buckets. */
  takeDecision?(due: PayerBuckets, decision: Decision): void;
}

function onlyNamed(due: PayerBuckets, names: readonly string[] | undefined): PayerBuckets {
  if (names === undefined) return due;
  return onlyThose(due, ({ name }) => names.includes(name));
}

function chargedOf(due: PayerBuckets, cost: number, decision: Decision): Charged {
  const { plan, unknownPlan } = due;
  if (decision.outcome === 'uncounted') {
    const { policy } = due;
    return { outcome: 'uncounted', policy, plan, unknownPlan, reason: decision.reason };
  }
  const { policy, rateLimit } = rateLimitFields(due, decision.buckets);
  if (decision.outcome === 'admitted') {
    const { nearLimit, shadowDenied } = remarks(due, decision.buckets);
    const filling = fillingOf(due.buckets, decision.buckets);
    return { outcome: 'admitted', policy, rateLimit, plan, unknownPlan, nearLimit, shadowDenied, filling };
  }
  const { degraded } = decision;
  const { bucket, state } = longestWait(due, decision.buckets);
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
    refusal: refusalOf(due, bucket, state, cost, degraded !== undefined),
    degraded,
    // A part of a limit is not the limit.
    filling: degraded === undefined ? fillingOf(due.buckets, decision.buckets) : undefined,
  };
}

/** Which buckets an admitted request nearly emptied, and which shadow limits would have refused it. */
interface Remarks {
  nearLimit: NearLimit[] | undefined;
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
    remarked.nearLimit.push({ ...namedLimit(bucket), owner: bucket.owner, remaining });
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

/** The last refusal by the buckets of each payer. In a flood all refusals are the same, so they are built once. */
const lastRefusals = new WeakMap<PayerBuckets, LastRefusal>();

interface LastRefusal {
  readonly bucket: PayerBucket;
  readonly isPart: boolean;
  readonly costPoints: number;
  readonly remaining: number;
  readonly seconds: number;
  readonly refusal: Refusal;
}

/** @param isPart whether it is this replica's part of the limit that has no room */
function refusalOf(
  due: PayerBuckets,
  bucket: PayerBucket,
  state: BucketState,
  costPoints: number,
  isPart: boolean,
): Refusal {
  const { remaining } = state;
  const seconds = Math.max(1, Math.ceil(state.retryAfterUs / US_PER_SECOND));
  const last = lastRefusals.get(due);
  const isSame = last?.costPoints === costPoints && last.seconds === seconds && last.remaining === remaining;
  if (isSame && last.bucket === bucket && last.isPart === isPart) return last.refusal;
  const text = limitText(bucket, remaining, costPoints, seconds, isPart);
  const refusal = new Refusal('RateLimitExceeded', text, {
    extensions: { ...namedLimit(bucket), costPoints },
    headers: { 'Retry-After': `${seconds}` },
  });
  lastRefusals.set(due, { bucket, isPart, costPoints, remaining, seconds, refusal });
  return refusal;
}
