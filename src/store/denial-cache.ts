/**
 * Caches denials. Only time frees points, so a bucket cannot admit a cost before the time at which the cost will fit. A denial is
 * therefore valid for `retryAfterUs` from before its call was sent, and needs no call during that time: a flood of 429s costs
 * Redis a few calls per second and bucket. This is exact: it never refuses what Redis would admit. A denial is cached for one
 * limit, window and cost, so a changed limit takes effect at once.
 */

import { type Awaitable, andThen } from '../domain/awaitable.ts';
import { monotonicUs, US_PER_SECOND } from '../domain/clock.ts';
import type { StoreObserver } from './observer.ts';
import type { BucketCharge, BucketState, Charge, Decision, Store } from './store.ts';

/** Two clocks may differ in speed: by at most 500 ppm while NTP corrects one of them. */
const CLOCK_RATE_MARGIN = 0.999;
/**
 * How long a denial is cached at most, in windows. Short, so that the RateLimit header stays fresh, and so that a Redis whose
 * clock has stepped back is soon called again.
 */
const MAX_AGE_WINDOWS = 0.1;
/** Per generation, of which there are two. Beyond that, older denials are dropped. */
const MAX_REMEMBERED = 5000;

interface Remembered {
  readonly bucket: BucketCharge;
  readonly windowSeconds: number;
  readonly state: BucketState;
  readonly sentUs: number;
  readonly receivedUs: number;
}

export class DenialCache implements Store {
  readonly #store: Store;
  readonly #observer: StoreObserver;
  readonly #nowUs: () => number;
  /** By key and cost. */
  #young = new Map<string, Remembered>();
  #old = new Map<string, Remembered>();
  #epoch = 0;

  /** `nowUs` is a clock for tests; it must not run backwards. */
  constructor(store: Store, observer: StoreObserver, nowUs: () => number = monotonicUs) {
    this.#store = store;
    this.#observer = observer;
    this.#nowUs = nowUs;
  }

  charge(charge: Charge): Awaitable<Decision> {
    const sentUs = this.#nowUs();
    const denied = this.#deny(charge, sentUs);
    if (denied !== undefined) {
      this.#observer.deniedFromMemory();
      return denied;
    }
    const epoch = this.#epoch;
    return andThen(this.#store.charge(charge), (decision) => {
      if (decision.outcome === 'denied' && epoch === this.#epoch)
        this.#remember(charge, decision.buckets, sentUs);
      if (decision.outcome === 'uncounted') this.forget();
      return decision;
    });
  }

  peek(charge: Charge): Promise<Decision> {
    return this.#store.peek(charge);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /** Drops all denials, because the store may have lost its buckets. */
  forget(): void {
    this.#epoch += 1;
    if (this.#young.size > 0) this.#young = new Map();
    if (this.#old.size > 0) this.#old = new Map();
  }

  /** The denial that the store would return; undefined if the store has to be called. */
  #deny({ buckets, cost, windowSeconds }: Charge, nowUs: number): Decision | undefined {
    if (this.#young.size === 0 && this.#old.size === 0) return undefined;
    const states: BucketState[] = [];
    let isDenied = false;
    for (const bucket of buckets) {
      const known = this.#recall(bucket, cost, windowSeconds);
      if (known === undefined || nowUs - known.receivedUs > MAX_AGE_WINDOWS * windowSeconds * US_PER_SECOND) {
        return undefined;
      }
      isDenied ||= isDenying(known, nowUs);
      states.push(stateAt(known, nowUs));
    }
    return isDenied ? { outcome: 'denied', buckets: states } : undefined;
  }

  #recall(bucket: BucketCharge, cost: number, windowSeconds: number): Remembered | undefined {
    const name = nameOf(bucket, cost);
    const known = this.#young.get(name) ?? this.#old.get(name);
    if (known === undefined || known.windowSeconds !== windowSeconds) return undefined;
    const isSame = known.bucket.limit === bucket.limit && known.bucket.shadow === bucket.shadow;
    return isSame ? known : undefined;
  }

  #remember({ buckets, cost, windowSeconds }: Charge, states: readonly BucketState[], sentUs: number): void {
    if (this.#young.size >= MAX_REMEMBERED) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    const receivedUs = this.#nowUs();
    for (const [index, bucket] of buckets.entries()) {
      const state = states[index];
      if (state === undefined) continue;
      this.#young.set(nameOf(bucket, cost), { bucket, windowSeconds, state, sentUs, receivedUs });
    }
  }
}

function nameOf({ key }: BucketCharge, cost: number): string {
  return `${cost} ${key}`;
}

function isDenying({ bucket, state, sentUs }: Remembered, nowUs: number): boolean {
  return bucket.shadow !== true && nowUs < sentUs + state.retryAfterUs * CLOCK_RATE_MARGIN;
}

/** Waits are measured from the arrival of the reply, so that Retry-After is never too short. */
function stateAt({ state, receivedUs }: Remembered, nowUs: number): BucketState {
  const agedUs = nowUs - receivedUs;
  return {
    remaining: state.remaining,
    resetAfterUs: Math.max(0, state.resetAfterUs - agedUs),
    retryAfterUs: Math.max(0, state.retryAfterUs - agedUs),
  };
}
