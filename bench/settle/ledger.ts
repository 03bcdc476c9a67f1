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

/** A request as the upstream saw it arrive. */
export interface Arrival {
  readonly id: string;
  readonly account: string;
  readonly reserved: number;
  readonly cost: number;
  readonly atMs: number;
}

/** What the requests of a run have cost, by the logs of the replicas and of the upstream. */
export interface Ledger {
  readonly admitted: number;
  readonly settled: number;
  readonly refused: number;
  /** Requests that Redis did not answer, or not before their client left, and their points, which it may have charged. */
  readonly uncounted: number;
  readonly uncountedPoints: number;
  /** Requests that reached the upstream, and whose replica was killed before it wrote their line. */
  readonly lost: number;
  /** Their reservations, which nobody settles, and what they would have cost. */
  readonly lostPoints: number;
  readonly lostFinalPoints: number;
  /** The reservations of all admitted requests with a line. */
  readonly reservedPoints: number;
  /** The sum of the access log: what its requests have cost in the end. */
  readonly loggedPoints: number;
  readonly reasons: Readonly<Record<string, number>>;
  /** The most points that a window of an Account certainly had, above the limit. */
  readonly pointsOver: number;
  /** The same as a share of the limit. */
  readonly fullest: number;
}

export function ledgerOf(
  lines: readonly Line[],
  arrivals: readonly Arrival[],
  limit: number,
  windowMs: number,
): Ledger {
  const admitted = lines.filter(({ outcome, cost = 0 }) => outcome === 'admitted' && cost > 0);
  const settled = admitted.filter((line) => line.settled !== undefined);
  const uncounted = lines.filter(
    ({ outcome, chargedAtUs }) =>
      outcome === 'uncounted' || (outcome === 'free' && chargedAtUs !== undefined),
  );
  const logged = new Set(lines.map(({ requestId }) => requestId));
  const lost = arrivals.filter(({ id }) => !logged.has(id));
  const accounts = [...new Set(admitted.map(({ account }) => account))];
  const windows = accounts.map((of) =>
    fullestWindow(
      admitted.filter(({ account }) => account === of).map((line) => timed(line, limit)),
      windowMs,
    ),
  );
  const fullest = Math.max(0, ...windows);
  const reasons: Record<string, number> = {};
  for (const { unsettled } of admitted)
    if (unsettled !== undefined) reasons[unsettled] = (reasons[unsettled] ?? 0) + 1;
  return {
    admitted: admitted.length,
    settled: settled.length,
    refused: lines.filter(({ outcome }) => outcome === 'denied').length,
    uncounted: uncounted.length,
    uncountedPoints: sum(uncounted.map(({ cost = 0 }) => cost)),
    lost: lost.length,
    lostPoints: sum(lost.map(({ reserved }) => reserved)),
    lostFinalPoints: sum(lost.map(({ cost }) => cost)),
    reservedPoints: sum(admitted.map(({ cost = 0 }) => cost)),
    loggedPoints: sum(admitted.map(finalOf)),
    reasons,
    pointsOver: Math.max(0, Math.round((fullest - 1) * limit)),
    fullest,
  };
}

function timed(line: Line, limit: number): Timed {
  const fromMs = (line.chargedAtUs ?? 0) / 1_000;
  return { fromMs, toMs: fromMs + (line.chargeMs ?? 0), points: finalOf(line), limit };
}

function finalOf({ settled, cost = 0 }: Line): number {
  return settled ?? cost;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
