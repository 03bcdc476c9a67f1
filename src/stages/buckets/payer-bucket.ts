import type { LimitInForce, LimitSource } from '../../domain/limits/limits.ts';
import type { LimitRow } from '../../domain/limits/rows.ts';
import type { ScopeName } from '../../domain/limits/scopes.ts';
import type { Selection } from '../../domain/limits/selection.ts';
import { bucketKey } from '../../store/keys.ts';
import type { BucketCharge } from '../../store/store.ts';

/** A bucket to charge, with its name in the response. */
export interface PayerBucket extends BucketCharge {
  /** The name of its row. */
  readonly name: string;
  readonly scope: ScopeName;
  /** What its row counts of the owner's requests. */
  readonly selection: Selection;
  /** Its name in the RateLimit headers: a Person's own bucket appears as the Account's. */
  readonly headerName: string;
  /** The Account, Organization, principal or address whose bucket it is. */
  readonly owner: string;
  /** Where its limit is set. */
  readonly source: LimitSource;
  /** The plan that sets its limit; undefined for another source. */
  readonly plan: string | undefined;
  /** Unix time until which that limit is valid; infinite if it does not expire. */
  readonly untilMs: number;
}

/** The limits in force of one bucket of one owner, live limits included. */
export interface InForce extends LimitInForce {
  /** When a limit of each source expires. */
  readonly ends: Readonly<Record<LimitSource, number>>;
  readonly plan: string | undefined;
}

/** What the key of a bucket is made of, besides the name of its row. */
interface KeyParts {
  readonly keyPrefix: string;
  readonly hashTag: string;
  readonly owner: string;
}

/** The bucket of the limit in force, and that of the shadow limit beside it. */
export function payerBucketsOf(
  row: LimitRow,
  { keyPrefix, hashTag, owner }: KeyParts,
  inForce: InForce,
): readonly PayerBucket[] {
  const { name, headerName, windowSeconds, scope, selection, counts } = row;
  const { limit, limitSource, shadowLimit, shadowSource, ends, plan } = inForce;
  const common = { name, headerName, owner, windowSeconds, scope, selection, counts };
  const from = (source: LimitSource) => {
    return { ...common, source, plan: source === 'plan' ? plan : undefined, untilMs: ends[source] };
  };
  const keyOf = (bucket: string) => bucketKey(keyPrefix, hashTag, bucket, owner);
  const buckets: PayerBucket[] = [];
  if (limit !== undefined) buckets.push({ ...from(limitSource), key: keyOf(name), limit });
  // A shadow bucket counts only what fits its own limit, so it needs its own key.
  if (shadowLimit !== undefined) {
    const key = keyOf(`${name}-shadow`);
    buckets.push({ ...from(shadowSource), key, limit: shadowLimit, shadow: true });
  }
  return buckets;
}
