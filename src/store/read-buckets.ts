import type { BucketCharge, Holder, Store, UncountedReason } from './store.ts';
import { MAX_BUCKETS, maxLimitOf } from './store.ts';

/** How full a bucket is, whatever its limit. */
export interface BucketReading {
  /** Points of the current window or period. Of a window at most 2,000,000,000, although a settlement can add more. */
  readonly used: number;
  /** Until the first of the used points return; 0 for an unused bucket. */
  readonly nextPointsAfterUs: number;
  /** Until all of them have returned; 0 for an unused bucket. Until the end of the period, where there is one. */
  readonly resetAfterUs: number;
  /** Who holds the slots of a bucket that counts concurrent requests. */
  readonly holders?: readonly Holder[];
}

type Readings =
  | { readonly outcome: 'read'; readonly buckets: readonly BucketReading[] }
  | { readonly outcome: 'uncounted'; readonly reason: UncountedReason };

/** Reads buckets of one Cluster slot without spending anything. The readings follow the order of the buckets. */
export async function readBuckets(
  store: Pick<Store, 'peek'>,
  buckets: readonly Omit<BucketCharge, 'limit'>[],
): Promise<Readings> {
  const read: BucketReading[] = [];
  // An owner can have hundreds of buckets, which no request is charged to at once.
  for (let start = 0; start < buckets.length; start += MAX_BUCKETS) {
    const readings = await readTogether(store, buckets.slice(start, start + MAX_BUCKETS));
    if (readings.outcome === 'uncounted') return readings;
    read.push(...readings.buckets);
  }
  return { outcome: 'read', buckets: read };
}

/**
 * A store reports what is left of a limit, never what was used, and when a cost fits. Two peeks at limits chosen here ask for
 * the rest. An example: 4 s ago a bucket was charged 3 points, 1 s ago 2 more, and the window is 10 s.
 *
 * 1. With the highest limit, 2,000,000,000 for a window, the bucket has 1,999,999,995 points left, so 5 are used. It is empty again in 9 s.
 * 2. With those 5 points as its limit, the bucket is full. A cost of 1 fits as soon as the oldest points expire, in 6 s.
 *
 * A charge or an expiry between the two peeks affects only the second one.
 */
async function readTogether(
  store: Pick<Store, 'peek'>,
  buckets: readonly Omit<BucketCharge, 'limit'>[],
): Promise<Readings> {
  const peek = (limitOf: (bucket: Omit<BucketCharge, 'limit'>, index: number) => number) =>
    store.peek({
      buckets: buckets.map((bucket, index) => ({ ...bucket, limit: limitOf(bucket, index), shadow: false })),
      cost: 1,
    });
  const whole = await peek(maxLimitOf);
  if (whole.outcome === 'uncounted') return whole;
  const used = buckets.map((bucket, index) => {
    const most = maxLimitOf(bucket);
    return most - (whole.buckets[index]?.remaining ?? most);
  });
  // An unused bucket has no limit of 0; with a limit of 1 it has room at once.
  const full = await peek((_, index) => Math.max(used[index] ?? 0, 1));
  if (full.outcome === 'uncounted') return full;
  const readings = whole.buckets.map((state, index) => ({
    used: used[index] ?? 0,
    nextPointsAfterUs: full.buckets[index]?.retryAfterUs ?? 0,
    resetAfterUs: state?.resetAfterUs ?? 0,
    ...(state?.holders && { holders: state.holders }),
  }));
  return { outcome: 'read', buckets: readings };
}
