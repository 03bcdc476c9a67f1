import { shownRule } from '../domain/limits/calendar.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { OperationFinder } from './input/entry.ts';
import { type ReadLogOptions, readLog } from './input/read-log.ts';
import type { BucketStats } from './measure/bucket-stats.ts';
import { type Circumstances, notesOn } from './notes.ts';
import { Replay, type Retries } from './replay.ts';
import { type GivenPlan, unmatchedOf, unmatchedPlans } from './unmatched.ts';

/** Reads a log and charges its requests with other limits. If the reading is ended early, the result covers the lines read so far. */
export async function runReplay(
  run: ReadLogOptions & {
    readonly hasLoggedCosts: boolean;
    readonly finder: OperationFinder | undefined;
    readonly limits: Limits;
    /** The plans that the limits have for this replay alone. Default: none. */
    readonly plans?: readonly GivenPlan[];
    readonly retries: Retries;
    /** Whether to record each bucket over time, for a report. */
    readonly hasSeries: boolean;
  },
): Promise<{ result: ReplayResult; replay: Replay }> {
  const { retries } = run;
  const replay = new Replay(run.limits, retries, run.hasSeries);
  const lineCounts = await readLog(run, (entry) => replay.take(entry));
  replay.end();
  const complete = !run.signal.aborted;
  const { plans = [], finder, hasLoggedCosts } = run;
  const circumstances = { replay, plans, lineCounts, retries, complete, finder, hasLoggedCosts };
  return { result: resultOf(circumstances), replay };
}

/** The result of a replay, as `weir replay --json` prints it. Shares are from 0 to 1, times are ISO 8601 in UTC. */
export type ReplayResult = ReturnType<typeof resultOf>;

export type BucketResult = ReturnType<typeof bucketResult>;

function resultOf(circumstances: Circumstances) {
  const { replay, plans, lineCounts, retries, complete } = circumstances;
  const { refused, requests, dropped } = replay;
  const asked = requests + replay.retries;
  return {
    /** Time of the first and the last charge, or null if there was none. */
    from: isoTime(replay.fromUs),
    to: isoTime(replay.toUs),
    /** Lines read, without blank ones. */
    lines: lineCounts.lines,
    unreadable: lineCounts.unreadable,
    /** The first lines that could not be read. */
    unreadableLines: lineCounts.named,
    /** Files that could not be read to their end, with the reason. */
    brokenFiles: lineCounts.brokenFiles,
    /** Lines that are not of requests, such as the gateway's start. */
    otherLines: lineCounts.other,
    /** Requests that were not charged: refused earlier, or OPTIONS. */
    uncharged: lineCounts.uncharged,
    /** Requests without an Account in the log. They are left out. */
    withoutAccount: lineCounts.anonymous,
    /** Requests replayed. */
    requests,
    /** `before`: by the limits of the log. `after`: by the limits replayed. */
    refused: { ...refused },
    shareRefused: { before: share(refused.before, requests + dropped), after: share(refused.after, asked) },
    /** Requests with a different outcome than in the log. */
    changed: { ...replay.changed },
    windowSeconds: replay.limits.windowSeconds,
    /** The assumption about refused clients, with the requests that it left out or added. */
    retries: { assumption: retries, dropped, added: replay.retries, gaveUp: replay.gaveUp },
    /** False if the reading was interrupted. */
    complete,
    /** The limitations of the numbers, as sentences. */
    notes: notesOn(circumstances),
    /** What the selections of limits name, and no request of the log was for; and plans of Accounts that the log does not have. */
    unmatched: [...unmatchedOf(replay), ...unmatchedPlans(plans, replay.buckets)],
    /** Most affected first. */
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

function bucketResult(stats: BucketStats) {
  const { requests, refusedBefore, refusedAfter, windows, worstHour, shadowLimit } = stats;
  return {
    scope: stats.row.scope,
    id: stats.id,
    bucket: stats.name,
    /** The replayed limit, in points or requests per window. Null if there is none. */
    limit: stats.limit ?? null,
    counts: stats.row.counts,
    windowSeconds: stats.row.windowSeconds,
    ...(stats.row.period && { period: shownRule(stats.row.period) }),
    /** Requests charged to this bucket, including added retries. */
    requests,
    points: stats.points,
    /** Requests that this bucket refused. If several had no room, the one with the longest wait counts. */
    refusedBefore,
    refusedAfter,
    shareRefused: { before: share(refusedBefore, stats.logged), after: share(refusedAfter, requests) },
    /** Requests of this bucket that another one refused: the Organization's for an Account, or the reverse. */
    refusedByOther: { ...stats.refusedByOther },
    /** A limit in shadow mode, and what it would have refused. */
    ...(shadowLimit !== undefined && { shadow: { limit: shadowLimit, refused: stats.shadowRefused } }),
    /** The most points requested in any window, including refused ones. */
    fullestWindow: stats.fullestWindow,
    /** Percentiles of the points per window, over the windows with at least one request. */
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
