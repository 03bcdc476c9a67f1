import { costIn, MAX_BUCKETS } from '../../store/store.ts';
import type { PayerBuckets } from './buckets.ts';
import type { PayerBucket } from './payer-bucket.ts';

/**
 * The buckets of a request whose path may mean several operations. A limit that is lower than the highest cost of these operations is used
 * whole, so that it does not refuse the request for ever. Limits that are tried out are left out if the buckets are too many for one
 * charge, because they refuse nothing.
 *
 * @param cost the highest one; undefined if it fits into each limit
 * @returns undefined if the buckets are still too many
 */
export function bucketsOfSeveral(due: PayerBuckets, cost: number | undefined): PayerBuckets | undefined {
  const all = due.buckets;
  const kept = all.length <= MAX_BUCKETS ? all : all.filter(({ shadow }) => shadow !== true);
  if (kept.length > MAX_BUCKETS) return undefined;
  const buckets = cost === undefined ? kept : kept.map((bucket) => withinItsLimit(bucket, cost));
  return { ...due, kind: undefined, buckets };
}

function withinItsLimit(bucket: PayerBucket, cost: number): PayerBucket {
  if (costIn(bucket, cost) <= bucket.limit) return bucket;
  return { ...bucket, cost: bucket.limit, alike: bucket.alike ?? bucket };
}
