import type { BucketName } from '../../domain/buckets.ts';
import { US_PER_SECOND } from '../../domain/clock.ts';
import type { LimitSource } from '../../domain/limits.ts';
import type { Buckets, PlannedBucket } from '../../gateway/buckets.ts';
import type { BucketState, Store, UncountedReason } from '../../store/store.ts';
import type { OperationCounts, Recent } from './activity.ts';
import { newSum } from './counts.ts';
import { findOwner, type Owner, type OwnerQuery, type OwnerSources } from './owner.ts';

/** A bucket as an operator sees it. What the store could not answer is null. */
export interface BucketUsage {
  readonly bucket: BucketName;
  readonly owner: string;
  readonly limit: number;
  readonly windowSeconds: number;
  readonly source: LimitSource;
  /** The file and line that set the limit. */
  readonly writtenAt: string | null;
  /** A shadow limit refuses nothing. */
  readonly shadow: boolean;
  /** When the override or live limit expires. */
  readonly until: string | null;
  /** Why the live limit was set, and by whom. */
  readonly why: string | null;
  readonly by: string | null;
  /** Points of the current window. */
  readonly used: number | null;
  readonly remaining: number | null;
  /** Until the first of the used points return. */
  readonly nextPointsAfterSeconds: number | null;
  /** Until the bucket is full again. */
  readonly resetAfterSeconds: number | null;
}

/** The answer to `GET /usage/accounts/{id}`. */
export interface Usage {
  readonly scope: Owner['scope'];
  readonly id: string;
  readonly organization: string | null;
  /** Why the store could not be read; null if it was. */
  readonly storeProblem: UncountedReason | null;
  readonly buckets: readonly BucketUsage[];
  /** Of the replica that answered. */
  readonly recent: Recent['windows'];
  readonly operations: readonly OperationCounts[];
}

export interface UsageSources extends OwnerSources {
  readonly buckets: Buckets;
  readonly store: Store;
  writtenAt(source: LimitSource, bucket: BucketName, id: string): Promise<string | undefined>;
}

const NONE = newSum();
const IDLE: Recent = { windows: { '10s': NONE, '1m': NONE, '10m': NONE }, operations: [] };

/** Reads what an owner has used, without spending anything; undefined for an owner that nobody here knows. */
export async function readUsage(query: OwnerQuery, sources: UsageSources): Promise<Usage | undefined> {
  const owner = await findOwner(query, sources);
  if (owner === undefined) return undefined;
  const { scope, id, organization } = owner;
  const planned = bucketsOf(owner, sources.buckets);
  const { windowSeconds } = sources.buckets.limits;
  const counted = await readCounts(planned, windowSeconds, sources.store);
  const buckets = planned.map(async (bucket, index) => {
    const writtenAt = await sources.writtenAt(bucket.source, bucket.name, bucket.owner);
    const live = liveOf(bucket, sources.buckets);
    return { ...limitOf(bucket, windowSeconds), ...live, writtenAt: writtenAt ?? null, ...counted.of(index) };
  });
  const { windows, operations } = sources.activity.recentOf(scope, id, performance.now()) ?? IDLE;
  return {
    scope,
    id,
    organization: organization ?? null,
    storeProblem: counted.problem,
    buckets: await Promise.all(buckets),
    recent: windows,
    operations,
  };
}

/** An Account's requests are refused by the buckets of its Organization as well. */
function bucketsOf({ scope, id, organization, hasOrganizationLimit, hashTag }: Owner, buckets: Buckets) {
  const own = buckets.ownedBy(scope, id, hashTag);
  if (scope !== 'account' || organization === undefined || !hasOrganizationLimit) return own;
  return [...own, ...buckets.ownedBy('organization', organization, hashTag)];
}

function limitOf({ name, owner, limit, shadow, source, untilMs }: PlannedBucket, windowSeconds: number) {
  return {
    bucket: name,
    owner,
    limit,
    windowSeconds,
    source,
    shadow: shadow === true,
    until: Number.isFinite(untilMs) ? new Date(untilMs).toISOString() : null,
  };
}

function liveOf({ name, owner, source }: PlannedBucket, buckets: Buckets): Pick<BucketUsage, 'why' | 'by'> {
  const live = source === 'live' ? buckets.live.find(name, owner, Date.now()) : undefined;
  return { why: live?.why ?? null, by: live?.by ?? null };
}

type CountOf = Pick<BucketUsage, 'used' | 'remaining' | 'nextPointsAfterSeconds' | 'resetAfterSeconds'>;

const UNREAD: CountOf = {
  used: null,
  remaining: null,
  nextPointsAfterSeconds: null,
  resetAfterSeconds: null,
};

/** The highest limit that a store takes: under it, a bucket reports all its points, though its own limit is lower. */
const HIGHEST_LIMIT = 2_000_000_000;

async function readCounts(
  planned: readonly PlannedBucket[],
  windowSeconds: number,
  store: Store,
): Promise<{ readonly problem: UncountedReason | null; of(index: number): CountOf }> {
  const peek = async (limits: readonly number[]) => {
    const buckets = planned.map(({ key }, index) => ({ key, limit: limits[index] ?? 1 }));
    return buckets.length === 0
      ? { outcome: 'admitted' as const, buckets: [] }
      : store.peek({ buckets, cost: 1, windowSeconds });
  };
  const full = await peek(planned.map(() => HIGHEST_LIMIT));
  if (full.outcome === 'uncounted') return { problem: full.reason, of: () => UNREAD };
  const used = full.buckets.map(({ remaining }) => HIGHEST_LIMIT - remaining);
  // One point more than is used has to wait for the oldest charge to expire.
  const next = await peek(used.map((points) => Math.max(points, 1)));
  if (next.outcome === 'uncounted') return { problem: next.reason, of: () => UNREAD };
  return {
    problem: null,
    of: (index) => countOf(planned[index], used[index], full.buckets[index], next.buckets[index]),
  };
}

function countOf(
  bucket: PlannedBucket | undefined,
  used: number | undefined,
  full: BucketState | undefined,
  next: BucketState | undefined,
): CountOf {
  if (bucket === undefined || used === undefined || full === undefined || next === undefined) return UNREAD;
  return {
    used,
    remaining: Math.max(0, bucket.limit - used),
    nextPointsAfterSeconds: seconds(next.retryAfterUs),
    resetAfterSeconds: seconds(full.resetAfterUs),
  };
}

/** Rounded up to a millisecond, so that nothing is promised early. */
function seconds(us: number): number {
  return Math.ceil(us / 1_000) / (US_PER_SECOND / 1_000);
}
