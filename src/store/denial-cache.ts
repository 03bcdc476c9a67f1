/**
 * Caches denials. Only time frees points, so a bucket cannot admit a cost before the time at which the cost will fit. A denial is
 * therefore valid for `retryAfterUs` from before its call was sent, and needs no call during that time: a flood of 429s costs
 * Redis a few calls per second and bucket. The denial of one bucket refuses every charge that needs this bucket, unless another
 * bucket may need a longer wait. A cached denial never refuses what Redis would admit, as long as Redis keeps its counts and its
 * clock runs. If the counts are lost while the connection lasts (FLUSHALL, DEL, an eviction, a failover behind a proxy), a replica may
 * refuse from its cache for up to a second. A denial is cached for one limit, window or calendar, and cost, so a changed limit takes
 * effect at once. Denials by limits on concurrent requests are not cached, because a request may end at any time.
 */

import { type Awaitable, andThenWith } from '../domain/awaitable.ts';
import { monotonicUs, US_PER_SECOND } from '../domain/clock.ts';
import { Generations } from './generations.ts';
import type { HeldSlots } from './in-flight/held-slots.ts';
import {
  type BucketCharge,
  type BucketState,
  type Charge,
  costIn,
  type Decision,
  isConcurrent,
  isOfOneCharge,
  type Settled,
  type Settlement,
  type Store,
  windowUsOf,
} from './store.ts';
import type { StoreObserver } from './store-observer.ts';

/** Two clocks may differ in speed, by at most 500 ppm while NTP corrects one. */
const CLOCK_RATE_MARGIN = 0.999;
/** How long a denial is cached at most, in windows, so that the RateLimit header of a short window stays fresh. */
const MAX_AGE_WINDOWS = 0.1;
/**
 * The same whatever the window: a Redis that has lost its counts, or whose clock has stepped, is asked again within a second. One
 * call a second for each bucket and cost is still next to nothing.
 */
const MAX_AGE_US = US_PER_SECOND;
/** Per generation; there are two. Beyond that, older denials are dropped. */
const MAX_REMEMBERED = 5000;
/** Buckets that were settled lately. Beyond that, all denials are dropped. */
const MAX_SETTLED = 5000;

interface Remembered {
  readonly bucket: BucketCharge;
  readonly slot: number;
  readonly state: BucketState;
  readonly sentUs: number;
  readonly receivedUs: number;
  /** Redis is asked again after this. */
  readonly freshUntilUs: number;
}

/** A charge that the store decides. */
interface PendingCharge {
  readonly cache: DenialCache;
  readonly charge: Charge;
  readonly sentUs: number;
  readonly epoch: number;
}

export class DenialCache implements Store {
  readonly #store: Store;
  readonly #observer: StoreObserver;
  readonly #nowUs: () => number;
  readonly #slotOf: ((key: string) => number) | undefined;
  /** By key and cost. */
  readonly #denials = new Generations<Remembered>(MAX_REMEMBERED);
  /** By key: when a settlement was answered, which may have made earlier denials wrong. */
  readonly #settledUs = new Map<string, number>();
  /** By slot: when a charge was not counted. What was sent before that is no longer known. */
  readonly #lostUs = new Map<number, number>();
  #epoch = 0;

  /**
   * @param slotOf the Cluster slot of a key; undefined where one server has all keys
   * @param nowUs a clock for tests; it must not run backwards
   */
  constructor(
    store: Store,
    observer: StoreObserver,
    nowUs: () => number = monotonicUs,
    slotOf?: (key: string) => number,
  ) {
    this.#store = store;
    this.#observer = observer;
    this.#nowUs = nowUs;
    this.#slotOf = slotOf;
  }

  charge(charge: Charge): Awaitable<Decision> {
    const sentUs = this.#nowUs();
    const denied = this.#deny(charge, sentUs);
    if (denied !== undefined) {
      this.#observer.deniedFromMemory();
      return denied;
    }
    const asked = { cache: this, charge, sentUs, epoch: this.#epoch };
    return andThenWith(this.#store.charge(charge), DenialCache.#learn, asked);
  }

  static #learn(decision: Decision, { cache, charge, sentUs, epoch }: PendingCharge): Decision {
    if (decision.outcome === 'denied' && epoch === cache.#epoch)
      cache.#remember(charge, decision.buckets, sentUs);
    if (decision.outcome === 'uncounted' && !isOfOneCharge(decision.reason)) cache.#forgetSlot(charge);
    return decision;
  }

  /** Earlier denials of these buckets were answered before the settlement, because both use the same connection. */
  settle(settlement: Settlement): Awaitable<Settled> {
    return andThenWith(this.#store.settle(settlement), DenialCache.#forgetSettled, {
      cache: this,
      settlement,
    });
  }

  static #forgetSettled(
    settled: Settled,
    { cache, settlement }: { readonly cache: DenialCache; readonly settlement: Settlement },
  ): Settled {
    const { buckets } = settlement.charge;
    if (cache.#denials.isEmpty) return settled;
    if (cache.#settledUs.size > MAX_SETTLED) cache.forget();
    const nowUs = cache.#nowUs();
    for (const { key } of buckets) cache.#settledUs.set(key, nowUs);
    return settled;
  }

  peek(charge: Charge): Promise<Decision> {
    return this.#store.peek(charge);
  }

  get slots(): HeldSlots {
    return this.#store.slots;
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /** Drops all denials, because the store may have lost its buckets. */
  forget(): void {
    this.#epoch += 1;
    this.#denials.clear();
    this.#settledUs.clear();
    this.#lostUs.clear();
  }

  /** The other slots of a Cluster may be at a master that answers, which a flood must not reach because this one is down. */
  #forgetSlot({ buckets: [first] }: Charge): void {
    if (this.#slotOf === undefined || first === undefined) this.forget();
    else this.#lostUs.set(this.#slotOf(first.key), this.#nowUs());
  }

  /** The denial that the store would return; undefined if the store has to be called. */
  #deny({ buckets, cost }: Charge, nowUs: number): Decision | undefined {
    if (this.#denials.isEmpty) return undefined;
    const states: (BucketState | undefined)[] = [];
    let waitUs = 0;
    // Of the buckets that the store has not described lately: each of them admits the cost within its window.
    let longestUnknownUs = 0;
    for (const bucket of buckets) {
      const known = this.#recall(bucket, cost, nowUs);
      if (known !== undefined && nowUs <= known.freshUntilUs) waitUs = Math.max(waitUs, waitOf(known, nowUs));
      else if (bucket.shadow !== true) {
        longestUnknownUs = Math.max(longestUnknownUs, windowUsOf(bucket));
      }
      states.push(known === undefined ? undefined : stateAt(known, nowUs));
    }
    return waitUs > 0 && waitUs >= longestUnknownUs ? { outcome: 'denied', buckets: states } : undefined;
  }

  #recall(bucket: BucketCharge, cost: number, nowUs: number): Remembered | undefined {
    const known = this.#denials.get(nameOf(bucket, cost));
    if (known === undefined || nowUs > known.sentUs + MAX_AGE_US) return undefined;
    if (this.#settledUs.size > 0 && known.receivedUs <= (this.#settledUs.get(bucket.key) ?? 0))
      return undefined;
    if (this.#lostUs.size > 0 && known.sentUs <= (this.#lostUs.get(known.slot) ?? 0)) return undefined;
    const { limit, shadow, calendar } = known.bucket;
    const isSame =
      limit === bucket.limit &&
      windowUsOf(known.bucket) === windowUsOf(bucket) &&
      calendar === bucket.calendar &&
      shadow === bucket.shadow;
    return isSame ? known : undefined;
  }

  #remember({ buckets, cost }: Charge, states: readonly (BucketState | undefined)[], sentUs: number): void {
    const receivedUs = this.#nowUs();
    // All buckets of a charge are in one slot.
    const slot = this.#slotOf?.(buckets[0]?.key ?? '') ?? 0;
    for (const [index, bucket] of buckets.entries()) {
      const state = states[index];
      if (state === undefined || isConcurrent(bucket)) continue;
      const freshUntilUs = freshUntil(bucket, sentUs, receivedUs);
      this.#denials.set(nameOf(bucket, cost), { bucket, slot, state, sentUs, receivedUs, freshUntilUs });
    }
  }
}

/** Redis decided at some time after the call was sent, so the denial is not older than that. */
function freshUntil(bucket: BucketCharge, sentUs: number, receivedUs: number): number {
  return Math.min(receivedUs + MAX_AGE_WINDOWS * windowUsOf(bucket), sentUs + MAX_AGE_US);
}

function nameOf(bucket: BucketCharge, cost: number): string {
  return `${costIn(bucket, cost)} ${bucket.key}`;
}

/** For how long this bucket still refuses; at most 0 if it does not. */
function waitOf({ bucket, state, sentUs }: Remembered, nowUs: number): number {
  return bucket.shadow === true ? 0 : sentUs + state.retryAfterUs * CLOCK_RATE_MARGIN - nowUs;
}

/** Waits are measured from when the reply arrived, so that Retry-After is never too short. */
function stateAt({ bucket, state, receivedUs }: Remembered, nowUs: number): BucketState {
  const agedUs = nowUs - receivedUs;
  return {
    remaining: agedUs < state.resetAfterUs ? state.remaining : bucket.limit,
    resetAfterUs: Math.max(0, state.resetAfterUs - agedUs),
    retryAfterUs: Math.max(0, state.retryAfterUs - agedUs),
  };
}
