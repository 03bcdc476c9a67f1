import { US_PER_SECOND } from '../../domain/clock.ts';
import { type BucketState, type Charge, isConcurrent, type Settlement } from '../store.ts';

const US_PER_MS = US_PER_SECOND / 1_000;

/** With two, at most twice the keys that are needed are kept. */
const CHECKED_PER_KEY = 2;

/** The slots of charges with `heldMs` in the memory store. */
export class LastingSlots {
  /** By key: when slots become free, and how many do so then. */
  readonly #ends = new Map<string, Map<number, number>>();
  #sweep = this.#ends.keys();

  /** How many are taken in the bucket with this key. */
  of(key: string, nowUs: number): number {
    const ends = this.#ends.get(key);
    let taken = 0;
    for (const [endUs, slots] of ends ?? []) {
      if (endUs > nowUs) taken += slots;
      else ends?.delete(endUs);
    }
    if (ends?.size === 0) this.#ends.delete(key);
    return taken;
  }

  /** @param states in which a shadow bucket without room takes no slot */
  take({ buckets, heldMs = 0 }: Charge, states: readonly BucketState[], nowUs: number): void {
    for (const [index, bucket] of buckets.entries()) {
      if (!isConcurrent(bucket) || states[index]?.retryAfterUs !== 0) continue;
      this.#drop(nowUs);
      this.#add(bucket.key, nowUs + heldMs * US_PER_MS, 1);
    }
  }

  free({ charge: { buckets, heldMs }, chargedAtUs }: Settlement): void {
    if (heldMs === undefined || chargedAtUs === undefined) return;
    const endUs = chargedAtUs + heldMs * US_PER_MS;
    for (const bucket of buckets) {
      if (isConcurrent(bucket) && this.#ends.get(bucket.key)?.has(endUs)) this.#add(bucket.key, endUs, -1);
    }
  }

  clear(): void {
    this.#ends.clear();
  }

  #add(key: string, endUs: number, slots: number): void {
    const ends = this.#ends.get(key) ?? new Map<number, number>();
    this.#ends.set(key, ends);
    const sum = (ends.get(endUs) ?? 0) + slots;
    if (sum > 0) ends.set(endUs, sum);
    else ends.delete(endUs);
  }

  /** Drops the ended slots of the next keys, in a cycle over all. */
  #drop(nowUs: number): void {
    for (let checked = 0; checked < CHECKED_PER_KEY; checked++) {
      const next = this.#sweep.next();
      if (next.done === true) this.#sweep = this.#ends.keys();
      else this.of(next.value, nowUs);
    }
  }
}
