import { exactDuration, roundedDuration } from '../../domain/duration.ts';
import { isScopeName, SCOPES } from '../../domain/limits/scopes.ts';
import { shownCount, shownTime } from '../../domain/shown.ts';
import type { SpentBy } from './fills.ts';
import type { RecordedRefusal, WhyRefused } from './refusal.ts';

/** Operations and principals that an answer names. */
const MOST_ROWS = 100;

/** A refusal as `GET /refusals/{requestId}` shows it. */
export type ShownRefusal = ReturnType<typeof shownRefusal>;

export function shownRefusal(requestId: string, found: WhyRefused) {
  const { refusal, atMs, caller } = found;
  const { principal, account, address } = caller;
  const { operation, cost, replica, degraded, retryAfterMs } = refusal;
  const used =
    refusal.scope === undefined || degraded !== undefined ? null : refusal.limit - refusal.remaining;
  const filledBy = filledByOf(found);
  const unit = refusal.counts === 'points' ? 'points' : 'requests';
  const known = filledBy.reduce((sum, one) => sum + one[unit], 0);
  return {
    requestId,
    at: new Date(atMs).toISOString(),
    /** Requests that are refused for the same reason within a window share what follows, which is as of the first of them. */
    asOf: new Date(refusal.atMs).toISOString(),
    replica,
    text: textOf(refusal, used !== null && known > used),
    /** Null for what has none, such as OPTIONS. */
    operation: operation || null,
    cost,
    principal,
    account,
    address,
    retryAfterSeconds: Math.ceil(retryAfterMs / 1_000),
    /** Why the store had not decided, so that the replica refused by its part of the limit; null if the store had. */
    degraded: degraded ?? null,
    limit: limitOf(refusal),
    /** Where the limit is set, in words; null for a block. */
    limitText: limitText(refusal),
    /** Points, requests or slots of the limit that were taken, at most the limit; null if the store did not count. */
    used,
    filledBy,
    /** What `filledBy` is, in words. */
    filledText: filledText(refusal),
    /** Whose explanation this is, in words, where it is older than a window of the limit; else null. */
    sharedText: sharedText(refusal, atMs),
    /** What is taken and not in `filledBy`. */
    unknown: used === null ? null : Math.max(0, used - known),
    unknownText: used === null ? null : unknownText(used - known, found),
    /** Since when each replica remembers what it admitted, where that is later than the window's begin. */
    unknownBefore: used !== null && used > known ? unknownBefore(found) : null,
  };
}

function limitOf({
  bucket,
  scope,
  owner,
  limit,
  counts,
  windowSeconds,
  source,
  plan,
  untilMs,
  writtenAt,
  period,
}: RecordedRefusal) {
  return {
    bucket,
    scope: scope ?? null,
    owner,
    limit,
    counts: counts ?? null,
    windowSeconds,
    /** Null for a window. */
    period:
      period === undefined ? null : { unit: period.unit, start: new Date(period.startMs).toISOString() },
    source: source ?? null,
    plan: plan ?? null,
    until: untilMs === undefined ? null : new Date(untilMs).toISOString(),
    writtenAt: writtenAt ?? null,
  };
}

/** The sum over the replicas, most points first. */
function filledByOf({ refusal, fills }: WhyRefused): readonly SpentBy[] {
  const sums = new Map<string, SpentBy>();
  for (const [, , rows] of fills) {
    for (const [of, by, points, requests] of rows) {
      const operation = of === 0 ? refusal.operation : of;
      const principal = by === 0 ? refusal.principal : by;
      const key = `${operation}\n${principal}`;
      const sum = sums.get(key) ?? { operation, principal, points: 0, requests: 0 };
      sum.points += points;
      sum.requests += requests;
      sums.set(key, sum);
    }
  }
  return [...sums.values()]
    .sort((a, b) => b.points - a.points || b.requests - a.requests)
    .slice(0, MOST_ROWS);
}

function unknownBefore({ fills }: WhyRefused): string | null {
  const latestMs = Math.max(0, ...fills.map(([, sinceMs]) => sinceMs));
  return latestMs === 0 ? null : new Date(latestMs).toISOString();
}

function limitText({ source, plan, untilMs, writtenAt, limit, owner }: RecordedRefusal): string | null {
  if (source === undefined) return null;
  const sources: Readonly<Record<string, string>> = {
    default: 'the default',
    plan: `the limit of plan ${plan}`,
    override: `an override of ${owner}`,
    live: 'a live limit',
  };
  const place = writtenAt === undefined ? '' : `, ${writtenAt}`;
  const end = untilMs === undefined ? '' : `, until ${shownTime(untilMs)} UTC`;
  return `The limit of ${shownCount(limit)} is ${sources[source] ?? source}${place}${end}.`;
}

function sharedText({ atMs: firstMs, windowSeconds }: RecordedRefusal, atMs: number): string | null {
  if (atMs - firstMs <= Math.max(1, windowSeconds) * 1_000) return null;
  return `In a flood, requests share an explanation: this is the one of the first, at ${shownTime(firstMs)} UTC.`;
}

function filledText({ atMs, windowSeconds, counts, period }: RecordedRefusal): string {
  const at = `${shownTime(atMs)} UTC`;
  if (counts === 'concurrent') return `In progress at ${at}`;
  if (period !== undefined) return `Admitted from ${shownTime(period.startMs)} to ${at}`;
  return `Admitted in the ${exactDuration(windowSeconds)} before ${at}`;
}

/** Null where all is known. */
function unknownText(unknown: number, found: WhyRefused): string | null {
  if (unknown <= 0) return null;
  const before = unknownBefore(found);
  const since =
    before === null ? '' : `: the replicas remember what they admitted since ${shownTime(before)} UTC`;
  return `Of the limit, ${shownCount(unknown)} more were taken by requests that are not known${since}.`;
}

/** @param isLeast whether more than the limit may have been used, such as before it was lowered */
function textOf(refusal: RecordedRefusal, isLeast: boolean): string {
  const {
    scope = '',
    owner,
    bucket,
    limit,
    remaining,
    counts,
    windowSeconds,
    period,
    operation,
    detail,
    degraded,
  } = refusal;
  if (detail !== undefined) return operation === '' ? detail : `${operation}: ${detail}`;
  const noun = isScopeName(scope) ? SCOPES[scope].noun : scope;
  const wait = roundedDuration(Math.ceil(refusal.retryAfterMs / 1_000), Math.ceil);
  const isConcurrent = counts === 'concurrent';
  const used = `${isConcurrent ? '' : 'used '}${isLeast ? 'at least ' : ''}${shownCount(limit - remaining)} of`;
  // How large a replica's part of the limit was is not known.
  const had = degraded === undefined ? used : `${shownCount(remaining)} left of ${refusal.replica}'s part of`;
  const part = degraded === undefined ? '' : `, counted by ${refusal.replica} alone (${degraded})`;
  const start = `${operation}: ${noun} ${owner} had ${had} ${shownCount(limit)}`;
  if (isConcurrent) return `${start} requests in progress (${bucket}${part}).`;
  const cost =
    counts === 'points'
      ? `; it costs ${shownCount(refusal.cost)}, and fits after ${wait}`
      : `; it fits after ${wait}`;
  const time = period === undefined ? `in ${exactDuration(windowSeconds)}` : `per ${period.unit}`;
  return `${start} ${counts} ${time} (${bucket}${part})${cost}.`;
}
