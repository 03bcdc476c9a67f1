import type { Awaitable } from '../domain/awaitable.ts';
import { US_PER_SECOND } from '../domain/clock.ts';
import { type Calendar, LONGEST_PERIOD_SECONDS, ruleText } from '../domain/limits/calendar.ts';
import { LONGEST_WINDOW_SECONDS, MAX_PERIOD_LIMIT } from '../domain/limits/rows.ts';
import type { ScopeName } from '../domain/limits/scopes.ts';
import type { HeldSlots, Hold } from './in-flight/held-slots.ts';

/**
 * Counts points. A store deals with keys, limits and costs, and is independent of HTTP, Accounts and operations.
 */
export interface Store {
  /**
   * Spends `cost` points in every bucket of the charge, or in none when one of them has no room.
   * Never rejects: a store that cannot decide returns `uncounted`, and the caller serves the request anyway. Synchronous
   * if no call is needed.
   */
  charge(charge: Charge): Awaitable<Decision>;

  /** The result that `charge` would have, without spending anything. */
  peek(charge: Charge): Promise<Decision>;

  /**
   * Replaces the cost of a charge that was admitted by its final cost: gives points back as of the time of the charge, or adds them as of
   * now, above the limits if it must be. Applied once for each id. Never rejects, and may take as long as the points count: a store that
   * does not answer is asked again.
   */
  settle(settlement: Settlement): Awaitable<Settled>;

  /** The slots of this process. `take` counts the slots of an `uncounted` charge if its request is served. */
  readonly slots: HeldSlots;

  /** Releases connections and timers; charges in progress end as `uncounted`. */
  close(): Promise<void>;
}

/** One request's cost, and the buckets that must all have room for it, whatever their windows. */
export interface Charge {
  readonly buckets: readonly BucketCharge[];
  /** Stands for all lists of buckets that differ only in their keys, so that what is made of these lists can be kept. Default: the list. */
  readonly kind?: object | undefined;
  /** Points, an integer of at least 1. */
  readonly cost: number;
  /** The operation that is charged, for the records of durable limits. */
  readonly operation?: string | undefined;
  /** Holds the slots in buckets that count concurrent requests, from the admission on. Without it, `heldMs` is required if there are such buckets. */
  readonly hold?: Hold | undefined;
  /**
   * How long the slots stay taken, also when this process has ended, unless a settlement of the charge frees them. A store may keep them
   * for a second longer, or ten if this is more than a minute.
   */
  readonly heldMs?: number | undefined;
}

export interface BucketCharge {
  /** The whole key in the store, with prefix and hash tag: see keys.ts. */
  readonly key: string;
  /** Points per window. It is sent with each charge, so a changed limit takes effect at once. */
  readonly limit: number;
  /**
   * Length of the bucket's sliding window, in whole seconds: at most 31 days. 0 for one that counts concurrent requests. The length of the
   * present period where there is a calendar.
   */
  readonly windowSeconds: number;
  /** The bucket counts in periods of this calendar, by the store's clock, and not in a sliding window. */
  readonly calendar?: Calendar | undefined;
  /** What the limit counts: the points that charges cost (the default), the charges, or the charges whose hold has not ended. */
  readonly counts?: 'points' | 'requests' | 'concurrent';
  /** Points that the charge costs this bucket, an integer of at least 1. Default: the cost of the charge. */
  readonly cost?: number | undefined;
  /** The limit under which the journal records its counts; undefined if they are not recorded. */
  readonly record?: RecordedLimit | undefined;
  /** The Account, Organization, principal or address whose bucket it is. The journal needs it. */
  readonly owner?: string | undefined;
  /** The journal's sum that was added to last. It is kept here because looking it up for each charge takes longer than adding. */
  sum?: PendingSum | undefined;
  /** A shadow bucket counts what fits and reports what it would have denied, but denies nothing. */
  readonly shadow?: boolean | undefined;
}

/** What a charge has cost in the end. */
export interface Settlement {
  /** As it was admitted. */
  readonly charge: Charge;
  /** Of its decision. Undefined if it is unknown: the points that were charged first, of all that count, are then given back, as many as there are. */
  readonly chargedAtUs: number | undefined;
  /** Points, an integer of 0 or more. 0 gives all back. */
  readonly cost: number;
  /** Whether limits that count requests do not count this one. */
  readonly refundsRequests: boolean;
  /** A second settlement with this id changes nothing. Letters, digits, `_` and `-`. */
  readonly id: string;
  /** By the store's clock, the settlement comes too late after this. By default it never does. */
  readonly endsAtUs?: number | undefined;
}

/**
 * What became of a settlement. `buckets` follow the order of the charge; the state of a bucket is undefined where it was not settled, or
 * cannot be read.
 */
export type Settled =
  | {
      /** `already`: it was settled before. `ended`: it came after its end. */
      readonly outcome: 'settled' | 'already' | 'ended';
      readonly buckets: readonly (SettledState | undefined)[];
    }
  | { readonly outcome: 'dropped'; readonly reason: DroppedReason };

/** A bucket right after a settlement. */
export interface SettledState extends Omit<BucketState, 'retryAfterUs'> {
  /** Points that were added above the limit. */
  readonly overPoints: number;
}

/** Why a settlement was given up: the charge then stays as it was. The `reason` label of `weir_settlements_dropped_total`. */
export const DROPPED_REASONS = [
  /** The store did not answer for as long as the points counted. */
  'expired',
  /** It is unknown whether the store has applied it, and too late to send it again. */
  'unknown',
  /** Too many settlements wait for the store. */
  'full',
  /** A number is out of range. */
  'invalid',
  /** The store object has been closed. */
  'closed',
] as const;

export type DroppedReason = (typeof DROPPED_REASONS)[number];

/** The part of an admitted charge that can be settled. */
export function countedPart(charge: Charge, states: readonly BucketState[]): Charge {
  const buckets = countedBuckets(charge.buckets, states);
  return buckets === charge.buckets ? charge : { ...charge, buckets };
}

/** The buckets that an admitted charge was counted in: a shadow bucket without room counted nothing. The same list, if that is all. */
export function countedBuckets<Bucket extends BucketCharge>(
  buckets: readonly Bucket[],
  states: readonly BucketState[],
): readonly Bucket[] {
  const isCounted = (bucket: Bucket, index: number) =>
    bucket.shadow !== true || (states[index]?.retryAfterUs ?? 0) === 0;
  return buckets.every(isCounted) ? buckets : buckets.filter(isCounted);
}

/** What a charge costs this bucket in the end. */
export function finalCostIn(bucket: BucketCharge, { charge, cost, refundsRequests }: Settlement): number {
  if (bucket.counts === 'requests') return refundsRequests ? 0 : 1;
  // What was charged another cost keeps it, unless all is returned or more is added.
  if (bucket.cost !== undefined && cost <= charge.cost) return cost === 0 ? 0 : bucket.cost;
  return bucket.counts === 'concurrent' ? costIn(bucket, charge.cost) : cost;
}

/** A limit in the journal. */
export interface RecordedLimit {
  readonly scope: ScopeName;
  /** The name of its row. */
  readonly name: string;
  /** Of no meaning with a calendar. */
  readonly windowSeconds: number;
  readonly calendar?: Calendar | undefined;
}

const recordedLimits = new Map<string, RecordedLimit>();

/** The one object of a limit in the journal, which sums are grouped by. */
export function recordedLimit({ scope, name, windowSeconds, calendar }: RecordedLimit): RecordedLimit {
  const id = `${scope} ${name} ${calendar === undefined ? windowSeconds : ruleText(calendar.rule)}`;
  let limit = recordedLimits.get(id);
  if (limit === undefined) {
    limit = { scope, name, windowSeconds, calendar };
    recordedLimits.set(id, limit);
  }
  return limit;
}

/** A bucket whose counts the journal records. */
export interface RecordedBucket {
  readonly key: string;
  readonly record: RecordedLimit;
  readonly owner: string;
  sum?: PendingSum | undefined;
}

/** What one operation did to one bucket within a minute. */
export interface RecordedSum extends Omit<RecordedBucket, 'sum'> {
  readonly operation: string;
  /** Minutes since 1970. */
  readonly minute: number;
  /** What was charged and settled, in the unit of the limit. Negative if more was given back than charged. */
  points: number;
  /** Admitted requests. */
  requests: number;
  /** Requests that this bucket refused. */
  refused: number;
}

/** A sum that may still be added to. */
export interface PendingSum extends RecordedSum {
  /** Who adds to it; undefined once it was taken out or joined with another. */
  pendingIn: object | undefined;
}

export function isRecordedBucket<T extends BucketCharge>(bucket: T): bucket is T & RecordedBucket {
  return bucket.record !== undefined;
}

/** Whether the journal records one of the buckets. */
export function isDurable(buckets: readonly BucketCharge[]): boolean {
  for (const bucket of buckets) if (isRecordedBucket(bucket)) return true;
  return false;
}

/** Whether the bucket counts requests from their admission to their end, and not points of a window. */
export function isConcurrent({ counts }: Pick<BucketCharge, 'counts'>): boolean {
  return counts === 'concurrent';
}

/** A bucket that no request is charged to, which shows whether the store counts. */
export function trialBucket(key: string): BucketCharge {
  return { key, limit: 1_000_000, windowSeconds: 1 };
}

/** A bucket right after the decision. Times are in microseconds, measured from the store's own clock. */
export interface BucketState {
  /** Points left in the current window, never negative. */
  readonly remaining: number;
  /** Until the bucket is full again; 0 for an untouched bucket. Until the end of the period, touched or not, where there is one. */
  readonly resetAfterUs: number;
  /** Until this cost fits this bucket; 0 if it did. A second where it is unknown, because requests have to end. */
  readonly retryAfterUs: number;
  /** Who holds the slots: of a peek at a bucket that counts concurrent requests. */
  readonly holders?: readonly Holder[];
}

/** A replica, and how many slots of one bucket its requests hold. */
export interface Holder {
  /** `HeldSlots.replica` of its store. Begins with `NO_REPLICA` for slots of charges with `heldMs`, which outlive every replica. */
  readonly replica: string;
  readonly slots: number;
}

/** No replica's name begins like this. */
export const NO_REPLICA = '~';

/** The length of the bucket's window, as stores measure it. */
export function windowUsOf({ windowSeconds }: Pick<BucketCharge, 'windowSeconds'>): number {
  return windowSeconds * US_PER_SECOND;
}

/** What a charge costs this bucket. */
export function costIn({ counts, cost: own }: Pick<BucketCharge, 'counts' | 'cost'>, cost: number): number {
  return counts === 'requests' || counts === 'concurrent' ? 1 : (own ?? cost);
}

/**
 * `buckets` follow the order of the charge. A denial is a value, not an error. The state of a bucket may be unknown in a denial that
 * another bucket decided without a call.
 */
export type Decision =
  | {
      readonly outcome: 'admitted';
      readonly buckets: readonly BucketState[];
      /** When the store decided, by its own clock. `Store.settle` needs it. */
      readonly chargedAtUs: number;
    }
  | {
      readonly outcome: 'denied';
      readonly buckets: readonly (BucketState | undefined)[];
      /** Why the store did not decide. This replica then refused by its own part of a limit, which `buckets` describe. */
      readonly degraded?: UncountedReason;
    }
  | {
      readonly outcome: 'uncounted';
      readonly reason: UncountedReason;
      /** The store's own error, if it named one for this charge alone. */
      readonly problem?: string;
    };

/** Why a charge was not counted; the `reason` label of `weir_degraded_total`. */
export const UNCOUNTED_REASONS = [
  /** The store did not answer in time. */
  'deadline',
  /** No connection to the store. */
  'disconnected',
  /** The store refuses the gateway's user, password or certificate, or denies it a command. */
  'auth',
  /** The store is full of connections. */
  'maxclients',
  /** Redis is reading its data from disk. */
  'loading',
  /** Redis is a replica, or has too few of them to write. */
  'readonly',
  /** Redis has no memory left to write. */
  'oom',
  /** Redis is busy running a script or function. */
  'busy',
  /** Redis refuses writes because it cannot persist them. */
  'misconf',
  /** Some of the Cluster's slots have no server. */
  'clusterdown',
  /** The Cluster is moving this slot. */
  'redirected',
  /** A key of the charge held another type than a bucket's. The charge has replaced it. */
  'wrongtype',
  /** A key of the charge held a value that no release has written. The charge has replaced it. */
  'wrongvalue',
  /** The clock of Redis was in none of the periods that the replica named, even when it named them by that clock. */
  'clock',
  /** Redis has lost what durable limits counted, and it is not put back yet. */
  'recovering',
  /** The charge cannot be decided: no bucket, a number out of range, a bucket twice, buckets of different Cluster slots. */
  'invalid',
  /** Any other error of the store. */
  'error',
  /** This store object has been closed. */
  'closed',
] as const;

export type UncountedReason = (typeof UNCOUNTED_REASONS)[number];

const ONE_CHARGE_REASONS: ReadonlySet<UncountedReason> = new Set([
  'wrongtype',
  'wrongvalue',
  'clock',
  'recovering',
  'invalid',
]);

/** Whether the store answers, and only this charge was not counted. */
export function isOfOneCharge(reason: UncountedReason): boolean {
  return ONE_CHARGE_REASONS.has(reason);
}

/** Points of windows are kept in 32 bits. Limits with a period may be higher. */
export const MAX_LIMIT = 2_000_000_000;

/** The highest limit that a bucket can have. */
export function maxLimitOf({ calendar }: Pick<BucketCharge, 'calendar'>): number {
  return calendar === undefined ? MAX_LIMIT : MAX_PERIOD_LIMIT;
}

/** The longest time for which slots are held for a charge. */
export const MOST_HELD_MS = 600_000;

/** The most buckets of a charge. Two of the contract and twelve further limits, each with a shadow limit beside it, are 28. */
export const MAX_BUCKETS = 32;

/**
 * Whether a store can decide this charge: integers in range, and no bucket twice. An invalid charge is `uncounted` on its own,
 * so that it does not fail the script call that it would share with others.
 */
export function isValidCharge({ buckets, cost, heldMs }: Charge): boolean {
  if (heldMs !== undefined && !isWithin(heldMs, MOST_HELD_MS)) return false;
  return isWithin(cost, MAX_LIMIT) && isWithin(buckets.length, MAX_BUCKETS) && areInRange(buckets, cost);
}

/** Whether a store can apply this settlement. */
export function isValidSettlement({ charge, chargedAtUs, cost, id }: Settlement): boolean {
  const hasCost = Number.isInteger(cost) && cost >= 0 && cost <= MAX_LIMIT;
  const hasTime = chargedAtUs === undefined || Number.isSafeInteger(chargedAtUs);
  return hasCost && hasTime && /^[\w-]{1,64}$/.test(id) && isValidCharge(charge);
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
  const { limit, windowSeconds, calendar } = bucket;
  const longestSeconds = calendar === undefined ? LONGEST_WINDOW_SECONDS : LONGEST_PERIOD_SECONDS;
  return (
    isWithin(limit, maxLimitOf(bucket)) &&
    (isWithin(windowSeconds, longestSeconds) || (windowSeconds === 0 && isConcurrent(bucket))) &&
    isWithin(costIn(bucket, cost), MAX_LIMIT)
  );
}

function isWithin(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= max;
}
