/** The clock that limits are counted by. Nearly every folder uses it, and needs nothing else of the domain for that. */

export const US_PER_SECOND = 1_000_000;

/** The end of the year 9999 in Unix time, the last year that has four digits in a date. */
export const LATEST_MS = 253_402_300_799_999;

/** Microseconds of a clock that never steps back; its zero is the start of this process. */
export function monotonicUs(): number {
  return Math.floor(performance.now() * 1000);
}

/** Where the clocks differ by more than this, the wall clock was set: Date.now() alone jitters by 1 ms. */
const TOLERANCE_MS = 5;

let originMs = performance.timeOrigin;

/**
 * Unix time in microseconds of a recent reading of `performance.now()`. Results differ as the
 * monotonic clock does, except when the wall clock was set in between: then later results follow the wall clock, so
 * that the logs of several replicas can be merged.
 */
export function unixUs(monotonicMs: number, nowMs = performance.now(), wallMs = Date.now()): number {
  const driftMs = wallMs - (originMs + nowMs);
  if (driftMs > TOLERANCE_MS || driftMs < -TOLERANCE_MS) originMs += driftMs;
  return Math.round((originMs + monotonicMs) * 1000);
}
