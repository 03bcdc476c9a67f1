import { SECONDS } from '../metrics/histogram.ts';

/** The bounds of the histograms, from 0. */
const BOUNDS_MS = [0, ...SECONDS.map((seconds) => seconds * 1_000)];

/**
 * A percentile of durations that were counted in the buckets of the metrics: linear within a bucket, as Prometheus computes
 * it, and the highest bound for a duration above it. Null without durations.
 */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    const rank = share * total - below;
    if (count > 0 && rank <= count) {
      const [from = 0, to = from] = BOUNDS_MS.slice(index, index + 2);
      return Math.round((from + (to - from) * (rank / count)) * 1_000) / 1_000;
    }
    below += count;
  }
  return BOUNDS_MS.at(-1) ?? null;
}
