import type { Registry } from 'prom-client';
import { IGNORED_REASONS, SHARED_KINDS, type SharedObserver } from '../../facts/ignored.ts';
import { counter, readGauge } from './register.ts';

/** Metrics of what the replicas share through Redis. */
export function sharedMetrics(registry: Registry): SharedObserver {
  const ignored = counter(
    registry,
    'weir_shared_ignored_total',
    'Messages, records and summaries in Redis that were ignored, by kind and reason.',
    { kind: SHARED_KINDS, reason: IGNORED_REASONS },
  );
  return {
    sharedIgnored: (kind, reason, count) => ignored.inc({ kind, reason }, count),
    showReplicas(replicas) {
      const divided = 'Replicas that limits are divided by while the store does not answer.';
      readGauge(registry, 'weir_share_replicas', divided, () => replicas.count);
      const age = 'Time since the replicas were counted. Missing before that.';
      readGauge(registry, 'weir_share_replicas_age_seconds', age, () => replicas.ageSeconds);
    },
    showClock(offsetMs) {
      const help = "How far this replica's clock is ahead of that of Redis.";
      readGauge(registry, 'weir_clock_offset_seconds', help, () => (offsetMs() ?? 0) / 1_000);
    },
  };
}
