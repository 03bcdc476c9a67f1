/** Waits between attempts: each is twice as long as the one before, up to the longest. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Bounds of the random factor of each wait. */
  readonly jitter?: readonly [least: number, most: number];
}

/** How far a wait may differ from its length where nothing else is stated. */
const JITTER = [0.75, 1.25] as const;

/** Doublings after which every wait is the longest, so that the product stays finite. */
const MOST_DOUBLINGS = 20;

/** The wait after so many consecutive failures. It is `firstMs` after one, and also after none. */
export function backoffMs({ firstMs, longestMs, jitter }: Backoff, failures: number): number {
  const doublings = Math.min(Math.max(0, failures - 1), MOST_DOUBLINGS);
  return jittered(Math.min(longestMs, firstMs * 2 ** doublings), jitter);
}

/** A time multiplied by a random factor, so that replicas that lost the same server do not all return at the same moment. */
export function jittered(ms: number, [least, most]: readonly [number, number] = JITTER): number {
  return Math.round(ms * (least + Math.random() * (most - least)));
}
