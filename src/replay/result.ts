import type { BucketName, ScopeName } from '../domain/buckets.ts';
import type { Tally, UnreadableLine } from './input/tally.ts';
import type { BucketStats } from './measure/bucket-stats.ts';
import type { Replay, Retries } from './replay.ts';

/** The result of a replay, as `weir replay --json` prints it. Shares are from 0 to 1, times are ISO 8601 in UTC. */
export interface ReplayResult {
  /** Time of the first and the last charge, or null if there was none. */
  readonly from: string | null;
  readonly to: string | null;
  /** Lines read, without blank ones. */
  readonly lines: number;
  readonly unreadable: number;
  /** The first lines that could not be read. */
  readonly unreadableLines: readonly UnreadableLine[];
  /** Lines that are not of requests, such as the gateway's start. */
  readonly otherLines: number;
  /** Requests that were not charged: refused earlier, or OPTIONS. */
  readonly uncharged: number;
  /** Requests without an Account in the log. They are left out. */
  readonly withoutAccount: number;
  /** Requests replayed. */
  readonly requests: number;
  /** `before`: by the limits of the log. `after`: by the limits replayed. */
  readonly refused: BeforeAfter;
  readonly shareRefused: BeforeAfter;
  /** Requests with a different outcome than in the log. */
  readonly changed: { readonly refused: number; readonly admitted: number };
  readonly windowSeconds: number;
  /** The assumption about refused clients, with the requests that it left out or added. */
  readonly retries: {
    readonly assumption: Retries;
    readonly dropped: number;
    readonly added: number;
    readonly gaveUp: number;
  };
  /** False if the reading was interrupted. */
  readonly complete: boolean;
  /** The limitations of the numbers, as sentences. */
  readonly notes: readonly string[];
  /** Most affected first. */
  readonly buckets: readonly BucketResult[];
}

export interface BeforeAfter {
  readonly before: number;
  readonly after: number;
}

export interface BucketResult {
  readonly scope: ScopeName;
  readonly id: string;
  readonly bucket: BucketName;
  /** The replayed limit, in points per window. Null if there is none. */
  readonly limit: number | null;
  /** Requests charged to this bucket, including added retries. */
  readonly requests: number;
  readonly points: number;
  /** Requests that this bucket refused. If several had no room, the one with the longest wait counts. */
  readonly refusedBefore: number;
  readonly refusedAfter: number;
  readonly shareRefused: BeforeAfter;
  /** Requests of this bucket that another one refused: the Organization's for an Account, or the reverse. */
  readonly refusedByOther: BeforeAfter;
  /** A limit in shadow mode, and what it would have refused. */
  readonly shadow?: { readonly limit: number; readonly refused: number };
  /** The most points requested in any window, including refused ones. */
  readonly fullestWindow: number;
  /** Percentiles of the points per window, over the windows with at least one request. */
  readonly windows: { readonly p50: number; readonly p99: number; readonly 'p99.9': number };
  readonly worstHour: {
    readonly from: string;
    readonly requests: number;
    readonly points: number;
    readonly refused: number;
  } | null;
}

export interface Outcome {
  readonly replay: Replay;
  readonly tally: Tally;
  readonly retries: Retries;
  readonly complete: boolean;
  readonly notes: readonly string[];
}

export function resultOf({ replay, tally, retries, complete, notes }: Outcome): ReplayResult {
  const { refused, requests, dropped } = replay;
  const asked = requests + replay.retries;
  return {
    from: isoTime(replay.fromUs),
    to: isoTime(replay.toUs),
    lines: tally.lines,
    unreadable: tally.unreadable,
    unreadableLines: tally.named,
    otherLines: tally.other,
    uncharged: tally.uncharged,
    withoutAccount: tally.anonymous,
    requests,
    refused: { ...refused },
    shareRefused: { before: share(refused.before, requests + dropped), after: share(refused.after, asked) },
    changed: { ...replay.changed },
    windowSeconds: replay.windowSeconds,
    retries: { assumption: retries, dropped, added: replay.retries, gaveUp: replay.gaveUp },
    complete,
    notes,
    buckets: [...replay.buckets].sort(byEffect).map(bucketResult),
  };
}

/** The change counts most, then the refusals, then the traffic. */
function byEffect(one: BucketStats, other: BucketStats): number {
  const effect = ({ refusedBefore, refusedAfter }: BucketStats) => Math.abs(refusedAfter - refusedBefore);
  return (
    effect(other) - effect(one) ||
    other.refusedAfter - one.refusedAfter ||
    other.points - one.points ||
    (one.id < other.id ? -1 : 1)
  );
}

function bucketResult(stats: BucketStats): BucketResult {
  const { requests, refusedBefore, refusedAfter, windows, worstHour, shadowLimit } = stats;
  return {
    scope: stats.bucket.scopeName,
    id: stats.id,
    bucket: stats.name,
    limit: stats.limit ?? null,
    requests,
    points: stats.points,
    refusedBefore,
    refusedAfter,
    shareRefused: { before: share(refusedBefore, stats.logged), after: share(refusedAfter, requests) },
    refusedByOther: { ...stats.refusedByOther },
    ...(shadowLimit === undefined ? {} : { shadow: { limit: shadowLimit, refused: stats.shadowRefused } }),
    fullestWindow: stats.fullestWindow,
    windows: { p50: windows.quantile(0.5), p99: windows.quantile(0.99), 'p99.9': windows.quantile(0.999) },
    worstHour: worstHour === undefined ? null : hourResult(worstHour),
  };
}

function hourResult({ startUs, requests, points, refused }: NonNullable<BucketStats['worstHour']>) {
  return { from: new Date(startUs / 1000).toISOString(), requests, points, refused };
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

function isoTime(us: number | undefined): string | null {
  return us === undefined ? null : new Date(us / 1000).toISOString();
}
