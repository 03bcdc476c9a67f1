/** When a figure is too old to be shown. Apart from how figures are written, because replicas that publish them ask this as well. */

/** How often figures are measured: replicas publish, the store is asked, and consoles are sent the fleet. */
export const PERIOD_MS = 1_000;

/** How often what the replicas share is read from Redis: live limits, blocks and revocations. */
export const SHARED_PERIOD_MS = 5_000;

/** Since when a figure is unknown: the time of its last measurement, once two periods have passed since. Null until then. */
export function unknownSince(measuredAtMs: number, nowMs: number, periodMs = PERIOD_MS): number | null {
  return nowMs - measuredAtMs > 2 * periodMs ? measuredAtMs : null;
}
