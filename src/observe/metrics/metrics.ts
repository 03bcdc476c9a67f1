import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { KubernetesObserver } from '../../config/kubernetes/follow.ts';
import type { Settings } from '../../config/settings/settings.ts';
import type { SharedObserver } from '../../facts/ignored.ts';
import type { IdentityObserver } from '../../identity/observer.ts';
import type { HeldSlots } from '../../store/in-flight/held-slots.ts';
import type { NotificationObserver } from '../notify/deliveries.ts';
import { type DescriptorObserver, descriptorMetrics } from './descriptors.ts';
import { identityMetrics } from './identity.ts';
import { notificationMetrics } from './notifications.ts';
import { gauge, readGauge } from './register.ts';
import { kubernetesMetrics, type ReloadMetrics, reloadMetrics } from './reload.ts';
import { type RequestMetrics, requestMetrics } from './requests.ts';
import { sharedMetrics } from './shared.ts';
import { type StoreMetrics, storeMetrics } from './store.ts';

/** All metrics. Labels never contain an Account, a token or a path. */
export interface Metrics
  extends RequestMetrics,
    StoreMetrics,
    IdentityObserver,
    ReloadMetrics,
    SharedObserver,
    KubernetesObserver,
    DescriptorObserver,
    NotificationObserver {
  /**
   * Shows gauges of the live limits, which are read at each scrape.
   *
   * @param firstEndMs Unix time at which the first of them ends; undefined if there is none
   */
  showLiveLimits(count: () => number, firstEndMs: () => number | undefined): void;
  /** Shows how many slots the requests of this process hold, which is read at each scrape. */
  showInFlight(slots: Pick<HeldSlots, 'byBucket'>): void;
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>;
  /** What the text has, as values. */
  read(): Promise<readonly MetricReading[]>;
  readonly contentType: string;
}

/** A metric, with a value for each combination of labels that it has. */
export interface MetricReading {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly values: readonly MetricValue[];
}

export interface MetricValue {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Of a histogram: the metric's name with `_bucket`, `_sum` or `_count`. */
  readonly metricName?: string;
}

/** What the metrics describe. */
export interface Described {
  /** The version of Weir. */
  readonly version: string;
  readonly identity: Settings['identity'];
}

/** Gauges of prom-client that Prometheus takes for counters by their name. Those of each type remain. */
const MISNAMED = [
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
];

export function createMetrics({ version, identity }: Described): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const build = 'Always 1. The version of Weir, and that of Node.';
  gauge(registry, 'weir_build_info', build, ...['version', 'node']).set(
    { version, node: process.versions.node },
    1,
  );
  return {
    ...requestMetrics(registry),
    ...storeMetrics(registry),
    ...identityMetrics(registry, identity),
    ...reloadMetrics(registry),
    ...sharedMetrics(registry),
    ...kubernetesMetrics(registry),
    ...descriptorMetrics(registry),
    ...notificationMetrics(registry),
    showLiveLimits(count, firstEndMs) {
      const end =
        'Unix time at which the first of the live limits in force ends. Missing while there is none.';
      readGauge(registry, 'weir_live_limits_first_end_timestamp_seconds', end, () => {
        const endMs = firstEndMs();
        return endMs === undefined ? undefined : endMs / 1_000;
      });
      const help = 'Live limits in force: those that were set while the gateway ran.';
      readGauge(registry, 'weir_live_limits', help, count);
    },
    showInFlight(slots) {
      new Gauge({
        name: 'weir_requests_in_flight',
        help: 'Requests of this replica that hold a slot, by their limit on concurrent requests.',
        labelNames: ['bucket'],
        registers: [registry],
        collect() {
          this.reset();
          for (const [bucket, count] of slots.byBucket()) this.set({ bucket }, count);
        },
      });
    },
    contentType: registry.contentType,
    text: () => registry.metrics(),
    // prom-client's types use an enum, but its code uses strings.
    read: async () => (await registry.getMetricsAsJSON()) as unknown as MetricReading[],
  };
}
