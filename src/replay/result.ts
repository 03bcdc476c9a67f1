import type { BucketName, ScopeName } from '../domain/buckets.ts';
import type { Tally, UnreadableLine } from './input/tally.ts';
import type { BucketStats } from './measure/bucket-stats.ts';
import type { Replay, Retries } from './replay.ts';

/** What a replay came to: the document that `weir replay --json` prints. Shares are from 0 to 1, times ISO 8601 in UTC. */
export interface ReplayResult {
  /** Time of the first and the last charge; null where there was none. */
  readonly from: string | null;
  readonly to: string | null;
  /** Lines read, blank ones left out. */
  readonly lines: number;
  readonly unreadable: number;
  /** The first lines that could not be read. */
  readonly unreadableLines: readonly UnreadableLine[];
  /** Lines that are not of requests, such as the gateway's start. */
  readonly otherLines: number;
  /** Requests that spend nothing: refused before the charge, or OPTIONS. */
  readonly uncharged: number;
  /** Requests whose Account the log does not give; left out. */
  readonly withoutAccount: number;
  /** Requests replayed. */
  readonly requests: number;
  /** `before`: by the limits of the log. `after`: by the limits replayed. */
  readonly refused: BeforeAfter;
  readonly shareRefused: BeforeAfter;
  /** Requests whose fate differs from the log's. */
  readonly changed: { readonly refused: number; readonly admitted: number };
  readonly windowSeconds: number;
  /** The assumption about clients that are refused, and what it left out or added. */
  readonly retries: {
    readonly assumption: Retries;
    readonly dropped: number;
    readonly added: number;
    readonly gaveUp: number;
  };
  /** False where the reading was interrupted. */
  readonly complete: boolean;
  /** What to know before trusting the numbers, in sentences. */
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
  /** Points per window by the limits replayed; null where no such limit applies. */
  readonly limit: number | null;
  /** Requests that spend from this bucket, added retries included. */
  readonly requests: number;
  readonly points: number;
  /** Requests that this bucket refused: where several had no room, the one with the longest wait. */
  readonly refusedBefore: number;
  readonly refusedAfter: number;
  readonly shareRefused: BeforeAfter;
  /** Requests of this bucket that another one refused: the Organization's for an Account, or the reverse. */
  readonly refusedByOther: BeforeAfter;
  /** A limit in shadow mode, and what it would have refused. */
  readonly shadow?: { readonly limit: number; readonly refused: number };
  /** The most points asked within any window, refused ones included. */
  readonly fullestWindow: number;
  /** Of the windows with at least one request: the points that this share of them did not exceed. */
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
