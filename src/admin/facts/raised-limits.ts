import { mostOf } from '../../config/checks/costs.ts';
import type { LiveLimit } from '../../facts/live-limits.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';

/** A live limit below what an operation charges, and what is in force in its place. */
export interface RaisedLimit extends Pick<LiveLimit, 'bucket' | 'id' | 'limit'> {
  /** The most that it charges. */
  readonly inForce: number;
  /** The operation that charges as much. */
  readonly operation: string;
  /** Such as `the live limit 8 for account-read of acct_7 is below the cost 10 of operation report`. */
  readonly about: string;
}

/** Undefined for a live limit that every operation fits. */
export function raisedLimit(
  { bucket, id, limit }: Pick<LiveLimit, 'bucket' | 'id' | 'limit'>,
  buckets: Pick<Buckets, 'costliest'>,
): RaisedLimit | undefined {
  const costliest = buckets.costliest(bucket);
  if (costliest === undefined || costliest.cost <= limit) return undefined;
  const about = `the live limit ${limit} for ${bucket} of ${id} is below ${mostOf(costliest)}`;
  return { bucket, id, limit, inForce: costliest.cost, operation: costliest.id, about };
}

/** All of them that are in force. */
export function raisedLimits(buckets: Buckets): readonly RaisedLimit[] {
  return buckets.live.inForce(buckets.nowMs).flatMap((live) => raisedLimit(live, buckets) ?? []);
}
