import { mostOf } from '../../config/checks/costs.ts';
import type { LiveLimit } from '../../facts/live-limits.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';

/** A limit, and the owner and bucket that it is for. */
export type LimitTarget = Pick<LiveLimit, 'bucket' | 'id' | 'limit'>;

/** A live limit below what an operation charges, and what is in force in its place. Undefined if every operation fits the limit. */
export function raisedLimit({ bucket, id, limit }: LimitTarget, buckets: Pick<Buckets, 'costliest'>) {
  const costliest = buckets.costliest(bucket);
  if (costliest === undefined || costliest.cost <= limit) return undefined;
  return {
    bucket,
    id,
    limit,
    /** The most that an operation charges, and that operation. */
    inForce: costliest.cost,
    operation: costliest.id,
    /** Such as `the live limit 8 for account-read of acct_7 is below the cost 10 of operation report`. */
    about: `the live limit ${limit} for ${bucket} of ${id} is below ${mostOf(costliest)}`,
  };
}

/** All of them that are in force. */
export function raisedLimits(buckets: Buckets) {
  return buckets.live.inForce(buckets.nowMs).flatMap((live) => raisedLimit(live, buckets) ?? []);
}
