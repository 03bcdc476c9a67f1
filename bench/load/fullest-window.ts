/** An admitted request: the decision fell between the two moments. */
export interface Timed {
  readonly fromMs: number;
  readonly toMs: number;
  readonly points: number;
  /** The limit by which it was decided. */
  readonly limit: number;
}

const WINDOW_MS = 1_000;

/**
 * The most points that one window, of a second by default, certainly admitted, over the highest limit in it: of requests that were sent after it began and answered
 * before it ended. Above 1 is a broken promise. A slow answer is never held against a counter, so the true fullest window may have more.
 * `admitted` is sorted afterwards.
 */
export function fullestWindow(admitted: Timed[], windowMs = WINDOW_MS): number {
  admitted.sort((one, other) => one.fromMs - other.fromMs);
  let worst = 0;
  for (const [first, { fromMs }] of admitted.entries()) {
    const endMs = fromMs + windowMs;
    let [points, limit] = [0, 0];
    for (let at = first; at < admitted.length; at++) {
      const one = admitted[at];
      if (one === undefined || one.fromMs >= endMs) break;
      // Times may be cut to whole milliseconds: the answer may have come almost one later.
      if (one.toMs >= endMs) continue;
      points += one.points;
      limit = Math.max(limit, one.limit);
    }
    if (limit > 0) worst = Math.max(worst, points / limit);
  }
  return worst;
}
