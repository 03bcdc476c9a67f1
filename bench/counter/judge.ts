import { fullestWindow } from '../load/fullest-window.ts';
import type { Arrival } from './patterns.ts';

const WINDOW_MS = 1000;

/** A decision, with the two moments between which the counter made it. */
export interface Decided {
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly cost: number;
  readonly isAdmitted: boolean;
}

export interface Verdict {
  /** Points of the fullest window over the limit: above 1 the counter has broken its word. */
  readonly worstWindow: number;
  /**
   * Points admitted over what an exact sliding log would have admitted of the same requests, least and most: as if each was
   * decided when it was sent, and as if when it was answered.
   */
  readonly usefulShare: readonly [number, number];
}

/** A slow answer is never held against a counter. */
export function judge(decided: readonly Decided[], limit: number): Verdict {
  const admitted = decided
    .filter(({ isAdmitted }) => isAdmitted)
    .map(({ sentMs, receivedMs, cost }) => ({ fromMs: sentMs, toMs: receivedMs, points: cost, limit }));
  const total = admitted.reduce((sum, { points }) => sum + points, 0);
  const shares = [
    total / exactPoints(decided, limit, 'sentMs'),
    total / exactPoints(decided, limit, 'receivedMs'),
  ];
  return {
    worstWindow: fullestWindow(admitted),
    usefulShare: [Math.min(...shares), Math.max(...shares)],
  };
}

/** What an exact sliding log admits of the same requests, decided at these moments. */
function exactPoints(decided: readonly Decided[], limit: number, moment: 'sentMs' | 'receivedMs'): number {
  const arrivals: Arrival[] = decided
    .map((one) => ({ atMs: one[moment], cost: one.cost }))
    .sort((a, b) => a.atMs - b.atMs);
  const log: Arrival[] = [];
  let oldest = 0;
  let held = 0;
  let total = 0;
  for (const { atMs, cost } of arrivals) {
    for (
      let entry = log[oldest];
      entry !== undefined && entry.atMs <= atMs - WINDOW_MS;
      entry = log[oldest]
    ) {
      held -= entry.cost;
      oldest += 1;
    }
    if (held + cost > limit) continue;
    log.push({ atMs, cost });
    held += cost;
    total += cost;
  }
  return total;
}
