import { randomBytes } from 'node:crypto';
import { bucketOf, SLOTS_ENDING } from '../keys.ts';
import type { BucketCharge, BucketState, Charge, Holder } from '../store.ts';

/** How many slots the requests of this process hold in each bucket that counts concurrent requests. */
export class HeldSlots {
  /** Names this process among those that share a store: 16 characters. */
  readonly replica = randomBytes(12).toString('base64url');
  readonly #counts = new Map<string, number>();

  /** In the bucket with this key. */
  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** This process, if it holds any of the bucket with this key. */
  holdersOf(key: string): readonly Holder[] {
    const slots = this.of(key);
    return slots === 0 ? [] : [{ replica: this.replica, slots }];
  }

  /** By the name of the bucket, whoever owns it. */
  byBucket(): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    for (const [key, count] of this.#counts) {
      const name = bucketOf(key).slice(0, -SLOTS_ENDING.length);
      sums.set(name, (sums.get(name) ?? 0) + count);
    }
    return sums;
  }

  /**
   * Counts the slots of a charge until its hold ends; those that it holds already, once.
   *
   * @param states in which a shadow bucket without room takes no slot
   */
  take({ buckets, hold }: Charge, states?: readonly BucketState[]): void {
    if (hold === undefined || hold.isTaken) return;
    const keys: string[] = [];
    for (const [index, bucket] of buckets.entries()) {
      if (!isConcurrent(bucket) || (states?.[index]?.retryAfterUs ?? 0) > 0) continue;
      keys.push(bucket.key);
      this.#counts.set(bucket.key, this.of(bucket.key) + 1);
    }
    hold.take(() => {
      for (const key of keys) this.release(key);
    });
  }

  protected release(key: string): void {
    const left = this.of(key) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}

/** Whether the bucket counts requests from their admission to their end, and not points of a window. */
export function isConcurrent({ counts }: Pick<BucketCharge, 'counts'>): boolean {
  return counts === 'concurrent';
}

/** When a slot becomes free is unknown. */
const RETRY_AFTER_US = 1_000_000;

/** The state of a bucket that counts concurrent requests. */
export function slotState(remaining: number, hasRoom: boolean, holders?: readonly Holder[]): BucketState {
  const state = { remaining, resetAfterUs: 0, retryAfterUs: hasRoom ? 0 : RETRY_AFTER_US };
  return holders === undefined ? state : { ...state, holders };
}
