import { applyLive } from '../../admin/limits/live.ts';
import { LIVE_LIMITS, type LiveLimit } from '../../facts/live-limits.ts';
import type { Buckets } from '../../stages/buckets/buckets.ts';
import type { SharedStore } from '../../store/shared-store.ts';
import { type Reported, type RunningFacts, runFacts } from './run-facts.ts';

/** Follows the live limits of all replicas, and with them the clock of Redis. */
export function runLiveLimits(
  shared: SharedStore | undefined,
  buckets: Buckets,
  reported: Reported,
): RunningFacts<LiveLimit> {
  const { clock, observer, changes } = reported;
  if (shared !== undefined) observer.showClock(() => clock.offsetMs);
  return runFacts(shared, {
    kind: LIVE_LIMITS,
    facts: buckets.live,
    words: { plural: 'live limits', metric: 'limit' },
    ...reported,
    apply: (limit) => applyLive(buckets, limit, changes),
    ended({ bucket, id, limit, why, by }) {
      const about = `the live limit ${limit} for ${bucket} of ${id}`;
      changes.info({ about, id, bucket, from: { limit }, why, by }, 'live-limit.ended');
    },
  });
}
