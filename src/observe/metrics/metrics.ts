import type { KubernetesObserver } from '../../config/kubernetes/follow.ts';
import { version } from '../../config/package.ts';
import type { ReloadedFile, ReloadObserver } from '../../config/watch.ts';
import { TRAFFICS } from '../../domain/operation.ts';
import type { SharedObserver } from '../../facts/ignored.ts';
import type { IdentityObserver } from '../../identity/identity-observer.ts';
import type { HeldSlots } from '../../store/in-flight/held-slots.ts';
import type { JournalObserver } from '../../store/journal/journal.ts';
import type { RecoveryObserver } from '../../store/journal/recovery.ts';
import type { NotificationObserver } from '../notify/deliveries.ts';
import { HttpMetrics } from './http-metrics.ts';
import type { IdentitySections } from './kinds.ts';
import { type MetricTable, OTHER_RULE, registerMetrics } from './metric-table.ts';
import { collectDefaultMetrics, Registry } from './prometheus-client.ts';
import { type RequestMetrics, requestMetrics } from './request-metrics.ts';
import { type StoreMetrics, storeMetrics } from './store-metrics.ts';

/** How a limit took a request. */
export type LimitOutcome = 'within' | 'near' | 'over' | 'shadow_over' | 'refunded';

/** Counts what Envoy's rate limit service decides. */
export interface DescriptorObserver {
  descriptorsDecided(outcome: 'admitted' | 'denied' | 'uncounted' | 'invalid', durationMs: number): void;
  /** @param label of a rule in the files, which are the only source of labels */
  descriptorLimited(domain: string, label: string, outcome: LimitOutcome): void;
}

/** The metrics as values. */
export interface MetricSource {
  read(): Promise<readonly MetricReading[]>;
}

/** All metrics. They are fed by the events of every part of the gateway. */
export interface Metrics
  extends MetricSource,
    RequestMetrics,
    StoreMetrics,
    IdentityObserver,
    ReloadObserver,
    SharedObserver,
    KubernetesObserver,
    DescriptorObserver,
    Omit<JournalObserver, 'journalUntidy'>,
    Pick<RecoveryObserver, 'recovered' | 'recoveryFailed'>,
    NotificationObserver {
  /** The version of the limits in force; empty before they are known. */
  limitsVersion(): string;
  /** Called with the version of the operations in force, at startup and after every change. */
  operationsInForce(sha: string): void;
  /** Empty before they are known. */
  operationsVersion(): string;
  /** Called with the end of the certificate that a port presents, in Unix milliseconds. */
  certificateInUse(port: string, endsAtMs: number): void;
  /**
   * Shows gauges of the live limits, which are read at each scrape.
   *
   * @param firstEndMs Unix time at which the first of them ends; undefined if there is none
   */
  showLiveLimits(count: () => number, firstEndMs: () => number | undefined): void;
  /** Shows how many slots the requests of this process hold, which is read at each scrape. */
  showInFlight(slots: HeldSlots): void;
  /** Shows the age of the oldest count that is not in the journal, and whether counts are being put back. They are read at each scrape. */
  showJournal(lagSeconds: () => number, isRecovering: () => boolean): void;
  /** The age of the oldest count that is not in the journal; undefined without a journal. */
  journalLagSeconds(): number | undefined;
  /** Requests with a 429 cannot be found by their ids. */
  refusalsUnfindable(count: number): void;
  /** Adds OpenTelemetry's HTTP metrics. To be called once. */
  openHttp(): HttpMetrics;
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>;
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

/** Gauges of prom-client that Prometheus takes for counters by their name. The gauges of each type remain. */
const MISNAMED = [
  'nodejs_active_resources_total',
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
];

let processMetrics: Registry | undefined;

/**
 * What prom-client measures of the process. It observes the garbage collector and the event loop until the process ends, so it is
 * started once: a registry of a closed gateway would stay in memory with everything that its metrics read.
 */
function metricsOfProcess(): Registry {
  if (processMetrics === undefined) {
    processMetrics = new Registry();
    collectDefaultMetrics({ register: processMetrics });
    for (const name of MISNAMED) processMetrics.removeSingleMetric(name);
  }
  return processMetrics;
}

/** @param identities only the providers that these settings use are shown */
export function createMetrics(identities: IdentitySections): Metrics {
  const registry = Registry.merge([metricsOfProcess()]);
  const table = registerMetrics(registry, identities);
  table.weir_build_info.set({ version, node: process.versions.node }, 1);
  for (const traffic of TRAFFICS) table.weir_tunnels.set({ traffic }, 0);
  let journalLagSeconds: () => number | undefined = () => undefined;
  return {
    ...requestMetrics(table),
    ...storeMetrics(table),
    ...identityMetrics(table),
    ...fileMetrics(table),
    ...sharedMetrics(table),
    ...descriptorMetrics(table),
    notified: (outcome, count = 1) => table.weir_notifications_total.add(count, outcome),
    showNotifications(waiting, isGone) {
      table.weir_notifications_waiting(waiting);
      table.weir_notifications_gone(() => Number(isGone()));
    },
    showLiveLimits(count, firstEndMs) {
      table.weir_live_limits(count);
      table.weir_live_limits_first_end_timestamp_seconds(() => {
        const endMs = firstEndMs();
        return endMs === undefined ? undefined : endMs / 1_000;
      });
    },
    journalWritten: (sums) => table.weir_journal_sums_total.add(sums),
    journalFailed: () => table.weir_journal_failures_total.add(1),
    // Points that were given back are negative.
    journalDropped: (points) => table.weir_journal_dropped_points_total.add(Math.abs(points)),
    recovered({ points }) {
      table.weir_journal_recoveries_total.add(1);
      table.weir_journal_put_back_points_total.add(points);
    },
    recoveryFailed: () => table.weir_journal_recovery_failures_total.add(1),
    showJournal(lagSeconds, isRecovering) {
      journalLagSeconds = lagSeconds;
      table.weir_journal_lag_seconds(lagSeconds);
      table.weir_journal_recovering(() => (isRecovering() ? 1 : 0));
    },
    journalLagSeconds: () => journalLagSeconds(),
    refusalsUnfindable: (count) => table.weir_refusals_unfindable_total.add(count),
    showInFlight: (slots) => table.weir_requests_in_flight(() => slots.byBucket()),
    openHttp: () => new HttpMetrics(registry),
    contentType: registry.contentType,
    text: () => registry.metrics(),
    // prom-client's types use an enum, but its code uses strings.
    read: async () => (await registry.getMetricsAsJSON()) as unknown as MetricReading[],
  };
}

function identityMetrics(table: MetricTable): IdentityObserver {
  const keyAges: (() => number)[] = [];
  return {
    identified: (source, outcome, cached) =>
      table.weir_identifications_total.add(1, source, outcome, cached ? 'true' : 'false'),
    providerCalled: (provider, outcome, durationMs) =>
      table.weir_identity_provider_duration_seconds.observe({ provider, outcome }, durationMs / 1000),
    showKeysAge(ageSeconds) {
      keyAges.push(ageSeconds);
      table.weir_jwks_age_seconds(() => Math.max(...keyAges.map((age) => age())));
    },
    revoked: () => table.weir_revocations_total.add(1),
    revocationsSubscribed: (isSubscribed) => table.weir_revocations_heard(() => Number(isSubscribed)),
  };
}

/** Feeds the metrics of the files that are followed. */
function fileMetrics(table: MetricTable) {
  const successful = {
    limits: table.weir_limits_last_reload_successful,
    operations: table.weir_operations_last_reload_successful,
    identities: table.weir_identities_last_reload_successful,
    certificates: table.weir_certificates_last_reload_successful,
    descriptors: table.weir_descriptors_last_reload_successful,
  };
  for (const one of Object.values(successful)) one.set(1);
  /** The parts whose last change was refused. */
  const refused: Record<ReloadedFile, Set<string>> = {
    limits: new Set(),
    operations: new Set(),
    identities: new Set(),
    certificates: new Set(),
    descriptors: new Set(),
  };
  const versions = { limits: '', operations: '' };
  const replaceVersion = (files: keyof typeof versions, sha: string) => {
    const info = table[`weir_${files}_info`];
    versions[files] = sha;
    info.reset();
    info.set({ sha }, 1);
  };
  return {
    limitsInForce: (sha: string) => replaceVersion('limits', sha),
    limitsVersion: () => versions.limits,
    operationsInForce: (sha: string) => replaceVersion('operations', sha),
    operationsVersion: () => versions.operations,
    certificateInUse: (port: string, endsAtMs: number) =>
      table.weir_certificate_expiry_timestamp_seconds.set({ port }, endsAtMs / 1_000),
    watchConnected: (object: string, isConnected: boolean) =>
      table.weir_kubernetes_watch_connected.set({ object }, Number(isConnected)),
    reloaded(file: ReloadedFile, part = '') {
      table.weir_reloads_total.add(1, file, 'success');
      refused[file].delete(part);
      successful[file].set(Number(refused[file].size === 0));
    },
    reloadRefused(file: ReloadedFile, part = '') {
      table.weir_reloads_total.add(1, file, 'failure');
      refused[file].add(part);
      successful[file].set(0);
    },
  };
}

/** Feeds the metrics of what the replicas share. */
function sharedMetrics(table: MetricTable): SharedObserver {
  return {
    sharedIgnored: (kind, reason, count) => table.weir_shared_ignored_total.add(count, kind, reason),
    showReplicas(replicas) {
      table.weir_share_replicas(() => replicas.count);
      table.weir_share_replicas_age_seconds(() => replicas.ageSeconds);
    },
    showClock: (offsetMs) => table.weir_clock_offset_seconds(() => (offsetMs() ?? 0) / 1_000),
  };
}

/** Rules with labels of their own; further ones are counted together. */
const MOST_LABELS = 1_000;

/** Feeds the metrics of Envoy's rate limit service. */
function descriptorMetrics(table: MetricTable): DescriptorObserver {
  const labels = new Map<string, Set<string>>();
  let labelCount = 0;
  const isLabelled = (domain: string, label: string): boolean => {
    const known = labels.get(domain) ?? new Set();
    if (known.has(label)) return true;
    if (labelCount >= MOST_LABELS) return false;
    labelCount += 1;
    labels.set(domain, known.add(label));
    return true;
  };
  return {
    descriptorsDecided(outcome, durationMs) {
      table.weir_descriptor_decisions_total.add(1, outcome);
      table.weir_descriptor_decision_duration_seconds.observe(durationMs / 1_000);
    },
    descriptorLimited(domain, label, outcome) {
      const [named, rule] = isLabelled(domain, label) ? [domain, label] : OTHER_RULE;
      table.weir_descriptor_limits_total.add(1, named, rule, outcome);
    },
  };
}
