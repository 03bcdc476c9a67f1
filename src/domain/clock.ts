/** The clock that limits are counted by. Nearly every folder uses it, and needs nothing else of the domain for that. */

export const US_PER_SECOND = 1_000_000;

/** Microseconds of a clock that never steps back; its zero is the start of this process. */
export function monotonicUs(): number {
  return Math.floor(performance.now() * 1000);
}
