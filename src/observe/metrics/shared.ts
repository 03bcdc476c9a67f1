import { Counter, Gauge, type Registry } from 'prom-client';
import { IGNORED_REASONS, SHARED_KINDS, type SharedObserver } from '../../shared/ignored.ts';

/** Metrics of what the replicas share through Redis. */
export function sharedMetrics(registry: Registry): SharedObserver {
  const registers = [registry];
  const ignored = new Counter({
    name: 'weir_shared_ignored_total',
    help: 'Messages, records and summaries in Redis that were ignored, by kind and reason.',
    labelNames: ['kind', 'reason'],
    registers,
  });
  for (const kind of SHARED_KINDS) {
    for (const reason of IGNORED_REASONS) ignored.inc({ kind, reason }, 0);
  }
  return {
    sharedIgnored: (kind, reason, count) => ignored.inc({ kind, reason }, count),
    showReplicas(replicas) {
      new Gauge({
        name: 'weir_share_replicas',
        help: 'Replicas that limits are divided by while the store does not answer.',
        registers,
        collect() {
          this.set(replicas.count);
        },
      });
      new Gauge({
        name: 'weir_share_replicas_age_seconds',
        help: 'Time since the replicas were counted. Missing before that.',
        registers,
        collect() {
          if (replicas.ageSeconds !== undefined) this.set(replicas.ageSeconds);
        },
      });
    },
    showClock(offsetMs) {
      new Gauge({
        name: 'weir_clock_offset_seconds',
        help: "How far this replica's clock is ahead of that of Redis.",
        registers,
        collect() {
          const ms = offsetMs();
          if (ms !== undefined) this.set(ms / 1_000);
        },
      });
    },
  };
}
