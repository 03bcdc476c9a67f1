import { LONGEST_WINDOW_SECONDS } from '../../domain/limits/rows.ts';
import { isConcurrent } from '../in-flight/held-slots.ts';
import { type BucketCharge, type Charge, costIn } from '../store.ts';

/** Points are kept in 32 bits. */
export const MAX_LIMIT = 2_000_000_000;
/** Two of the contract and twelve further limits, each with a shadow limit beside it, are 28. */
const MAX_BUCKETS = 32;

/**
 * Whether a store can decide this charge: integers in range, and no bucket twice. An invalid charge is `uncounted` on its own,
 * so that it does not fail the script call that it would share with others.
 */
export function isValidCharge({ buckets, cost }: Charge): boolean {
  return isWithin(cost, MAX_LIMIT) && isWithin(buckets.length, MAX_BUCKETS) && areInRange(buckets, cost);
}

function areInRange(buckets: readonly BucketCharge[], cost: number): boolean {
  for (let index = 0; index < buckets.length; index++) {
    const bucket = buckets[index];
    if (bucket === undefined || !isInRange(bucket, cost)) return false;
    for (let earlier = 0; earlier < index; earlier++) if (buckets[earlier]?.key === bucket.key) return false;
  }
  return true;
}

function isInRange(bucket: BucketCharge, cost: number): boolean {
  const { limit, windowSeconds } = bucket;
  return (
    isWithin(limit, MAX_LIMIT) &&
    (isWithin(windowSeconds, LONGEST_WINDOW_SECONDS) || (windowSeconds === 0 && isConcurrent(bucket))) &&
    isWithin(costIn(bucket, cost), MAX_LIMIT)
  );
}

function isWithin(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= max;
}
