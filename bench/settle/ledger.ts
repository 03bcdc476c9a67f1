import { fullestWindow, type Timed } from '../load/fullest-window.ts';

/** A request as the access log has it. */
export interface Line {
  readonly requestId: string;
  readonly account?: string;
  readonly outcome: string;
  readonly status: number;
  readonly cost?: number;
  readonly settled?: number;
  readonly unsettled?: string;
  readonly chargedAtUs?: number;
  readonly chargeMs?: number;
}

/** The body of a request. */
export interface Question {
  readonly max_completion_tokens: number;
  /** Not members of OpenAI's API: who asks, what the answer will cost, and when the client sent the request. */
  readonly account: string;
  readonly final_cost: number;
  readonly sent_ms: number;
}

/** A stream as the upstream saw it, when it has ended. */
export interface Stream {
  readonly id: string;
  readonly account: string;
  readonly reserved: number;
  readonly cost: number;
  /** When the client sent the request, when it arrived, and when the stream ended. */
  readonly sentMs: number;
  readonly atMs: number;
  readonly endMs: number;
  /** Whether all of it was sent. */
  readonly isWhole: boolean;
}

/** What the requests of a run have cost, by the logs of the replicas and of the upstream. */
export interface Ledger {
  readonly admitted: number;
  readonly settled: number;
  readonly refused: number;
  readonly reasons: Readonly<Record<string, number>>;
  /** The reservations of all admitted requests with a line. */
  readonly reservedPoints: number;
  /** The sum of the access log: what its requests have cost in the end. */
  readonly loggedPoints: number;
  /** Requests that reached the upstream, and whose replica was killed before it wrote their line. */
  readonly lost: number;
  /** What Redis counts of them: their reservations, or their costs if they were settled just before. */
  readonly lostPoints: Range;
  /** Requests that Redis did not answer, or not before their client left. It may have charged them. */
  readonly uncounted: number;
  /** Requests whose replica was killed before it forwarded them. Redis may have charged them. */
  readonly unforwarded: number;
  /** What both kinds reserved together. */
  readonly uncertainPoints: number;
  /** The most points that a window of an Account certainly had, as a part of the limit. */
  readonly fullest: number;
}

export interface Range {
  readonly least: number;
  readonly most: number;
}

export function ledgerOf(
  lines: readonly Line[],
  streams: readonly Stream[],
  unanswered: readonly Question[],
  limit: number,
  windowMs: number,
): Ledger {
  const admitted = lines.filter(({ outcome, cost = 0 }) => outcome === 'admitted' && cost > 0);
  const uncounted = lines.filter(
    ({ outcome, chargedAtUs }) =>
      outcome === 'uncounted' || (outcome === 'free' && chargedAtUs !== undefined),
  );
  const logged = new Set(lines.map(({ requestId }) => requestId));
  const lost = streams.filter(({ id }) => !logged.has(id));
  const arrived = new Set(streams.map(({ account, reserved, sentMs }) => `${account} ${reserved} ${sentMs}`));
  const unforwarded = unanswered.filter(
    ({ account, max_completion_tokens: reserved, sent_ms: sentMs }) =>
      !arrived.has(`${account} ${reserved} ${sentMs}`),
  );
  const reasons: Record<string, number> = {};
  for (const { unsettled } of admitted)
    if (unsettled !== undefined) reasons[unsettled] = (reasons[unsettled] ?? 0) + 1;
  return {
    admitted: admitted.length,
    settled: admitted.filter((line) => line.settled !== undefined).length,
    refused: lines.filter(({ outcome }) => outcome === 'denied').length,
    reasons,
    reservedPoints: sum(admitted.map(({ cost = 0 }) => cost)),
    loggedPoints: sum(admitted.map(finalOf)),
    lost: lost.length,
    lostPoints: { least: sum(lost.map(leastOf)), most: sum(lost.map(({ reserved }) => reserved)) },
    uncounted: uncounted.length,
    unforwarded: unforwarded.length,
    uncertainPoints: sum([
      ...uncounted.map(({ cost = 0 }) => cost),
      ...unforwarded.map((question) => question.max_completion_tokens),
    ]),
    fullest: fullestOf(
      [
        ...admitted.map((line) => ({ account: line.account ?? '', timed: timedLine(line, limit) })),
        ...lost.map((stream) => ({ account: stream.account, timed: timedStream(stream, limit) })),
      ],
      windowMs,
    ),
  };
}

/** The most points that a window of an Account certainly had by the upstream's log, as a part of the limit. */
export function fullestOfStreams(streams: readonly Stream[], limit: number, windowMs: number): number {
  const whole = streams.filter(({ isWhole }) => isWhole);
  return fullestOf(
    whole.map((stream) => ({ account: stream.account, timed: timedStream(stream, limit) })),
    windowMs,
  );
}

/** How many streams there were at once, once a second: the median, and the most. */
export function streamsAtOnce(streams: readonly Stream[]): { readonly usual: number; readonly most: number } {
  const [first, last] = [streams[0]?.atMs ?? 0, Math.max(0, ...streams.map(({ atMs }) => atMs))];
  const counts: number[] = [];
  for (let nowMs = first; nowMs <= last; nowMs += 1_000)
    counts.push(streams.filter(({ atMs, endMs }) => atMs <= nowMs && nowMs < endMs).length);
  counts.sort((one, other) => one - other);
  return { usual: counts[Math.floor(counts.length / 2)] ?? 0, most: counts.at(-1) ?? 0 };
}

function fullestOf(
  charges: readonly { readonly account: string; readonly timed: Timed }[],
  windowMs: number,
): number {
  const accounts = [...new Set(charges.map(({ account }) => account))];
  const windows = accounts.map((of) =>
    fullestWindow(
      charges.filter(({ account }) => account === of).map(({ timed }) => timed),
      windowMs,
    ),
  );
  return Math.max(0, ...windows);
}

function timedLine(line: Line, limit: number): Timed {
  const fromMs = (line.chargedAtUs ?? 0) / 1_000;
  return { fromMs, toMs: fromMs + (line.chargeMs ?? 0), points: finalOf(line), limit };
}

function timedStream(stream: Stream, limit: number): Timed {
  return { fromMs: stream.sentMs, toMs: stream.atMs, points: leastOf(stream), limit };
}

function finalOf({ settled, cost = 0 }: Line): number {
  return settled ?? cost;
}

function leastOf({ isWhole, cost, reserved }: Stream): number {
  return isWhole ? cost : reserved;
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
