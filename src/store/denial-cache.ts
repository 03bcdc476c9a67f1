/**
 * What a denial teaches. Only time frees points: until the moment at which a cost will fit its bucket, the bucket
 * cannot admit that cost, whoever asks. So a denial holds for `retryAfterUs` from before its call was sent, and needs no
 * call for that long: a flood of 429s costs Redis a few calls per second and bucket. It is exact: it never refuses what
 * Redis would admit. It binds one limit, window and cost; a changed limit asks Redis at once.
 */

import { type Awaitable, andThen } from '../domain/awaitable.ts';
import { monotonicUs } from '../domain/clock.ts';
import type { StoreObserver } from './observer.ts';
import type { BucketCharge, BucketState, Charge, Decision, Store } from './store.ts';

/** Two clocks may differ in speed, by 500 ppm at most where NTP corrects one of them. */
const CLOCK_RATE_MARGIN = 0.999;
/**
 * How long an answer is remembered at most, in windows. Short, so that what a reply shows of the buckets is fresh, and so
 * that a Redis whose clock has stepped back is soon asked again: its buckets stay full for a window from then.
 */
const MAX_AGE_WINDOWS = 0.1;
/** Per generation, of which there are two. Beyond it the older denials are asked for again. */
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

  /** The store behind may have lost its buckets: nothing that was learnt holds any longer. */
  forget(): void {
    this.#epoch += 1;
    if (this.#young.size > 0) this.#young = new Map();
    if (this.#old.size > 0) this.#old = new Map();
  }

  /** The denial that the store would answer; undefined when only the store can tell. */
  #deny({ buckets, cost, windowSeconds }: Charge, nowUs: number): Decision | undefined {
    if (this.#young.size === 0 && this.#old.size === 0) return undefined;
    const states: BucketState[] = [];
    let isDenied = false;
    for (const bucket of buckets) {
      const known = this.#recall(bucket, cost, windowSeconds);
      if (known === undefined || nowUs - known.receivedUs > MAX_AGE_WINDOWS * windowSeconds * 1_000_000) {
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

/** Waits are measured from after the answer, so that no client is told to come back before its cost fits. */
function stateAt({ state, receivedUs }: Remembered, nowUs: number): BucketState {
  const agedUs = nowUs - receivedUs;
  return {
    remaining: state.remaining,
    resetAfterUs: Math.max(0, state.resetAfterUs - agedUs),
    retryAfterUs: Math.max(0, state.retryAfterUs - agedUs),
  };
}
