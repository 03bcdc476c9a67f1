import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { GatewayObserver } from '../gateway/gateway.ts';
import type { Exchange } from '../gateway/types.ts';
import type { StoreObserver } from '../store/observer.ts';

/** Seconds; from a charge answered from memory to a request near its time-out. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Everything that `/metrics` shows. No label ever holds an account, a token or a path. */
export interface Metrics extends GatewayObserver, StoreObserver {
  /** The Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'weir_requests_total',
    help: 'Requests by kind of operation, bucket (of a 429: the one that refused) and outcome.',
    labelNames: ['kind', 'bucket', 'outcome'],
    registers,
  });
  const points = new Counter({
    name: 'weir_points_charged_total',
    help: 'Points charged to Accounts and Persons; what is also charged to an Organization counts once.',
    labelNames: ['kind'],
    registers,
  });
  const degraded = new Counter({
    name: 'weir_degraded_total',
    help: 'Requests served although they could not be counted, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const unlisted = new Counter({
    name: 'weir_unlisted_operations_total',
    help: 'Requests that no operation of the OpenAPI document matches, by method.',
    labelNames: ['method'],
    registers,
  });
  const histogram = (name: string, help: string) =>
    new Histogram({ name, help, buckets: SECONDS, registers });
  const charge = histogram('weir_charge_duration_seconds', 'Time to decide a charge, store included.');
  const upstream = histogram('weir_upstream_duration_seconds', "Time until the upstream's response headers.");
  const total = histogram(
    'weir_request_duration_seconds',
    'Time from request headers to the end of the response.',
  );

  return {
    ...storeMetrics(registry),
    contentType: registry.contentType,
    text: () => registry.metrics(),
    unlistedOperation: (method) => unlisted.inc({ method }),
    requestFinished(exchange, _status, totalMs) {
      const { operation, charged, refusal, chargeMs, upstreamMs } = exchange;
      const kind = operation?.kind ?? 'none';
      requests.inc({ kind, bucket: bucketOf(exchange), outcome: outcomeOf(exchange) });
      total.observe(totalMs / 1000);
      if (chargeMs !== undefined) charge.observe(chargeMs / 1000);
      if (upstreamMs !== undefined) upstream.observe(upstreamMs / 1000);
      if (charged?.outcome === 'admitted') points.inc({ kind }, operation?.cost);
      if (charged?.outcome === 'uncounted' && refusal === undefined) degraded.inc({ reason: charged.reason });
    },
  };
}

const BREAKER_STATES = { closed: 0, 'half-open': 1, open: 2 };

function storeMetrics(registry: Registry): StoreObserver {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const uncounted = counter(
    'weir_points_uncounted_total',
    'Points of requests that were not counted, by reason.',
    ['reason'],
  );
  const late = counter(
    'weir_points_late_total',
    'Points that the store counted after their requests had gone on uncounted.',
  );
  const remembered = counter(
    'weir_denials_remembered_total',
    'Denials answered from memory, without a store call.',
  );
  const failures = counter(
    'weir_store_connection_failures_total',
    'Failed connections to the store, by reason.',
    ['reason'],
  );
  const duration = new Histogram({
    name: 'weir_store_call_duration_seconds',
    help: 'Time that a call to the store took, of those answered in time.',
    buckets: SECONDS,
    registers,
  });
  const decisions = new Histogram({
    name: 'weir_store_call_decisions',
    help: 'Decisions that shared a call to the store.',
    buckets: [1, 2, 4, 8, 16, 32, 64],
    registers,
  });
  const breaker = new Gauge({
    name: 'weir_store_breaker_state',
    help: 'Circuit breaker of the store, or of each Cluster master: 0 closed, 1 half-open, 2 open.',
    labelNames: ['route'],
    registers,
  });
  return {
    uncounted: (reason, points) => uncounted.inc({ reason }, points),
    answeredLate: (points) => late.inc(points),
    deniedFromMemory: () => remembered.inc(),
    called(count, roundTripUs) {
      decisions.observe(count);
      duration.observe(roundTripUs / 1_000_000);
    },
    breakerChanged: (route, state) => breaker.set({ route }, BREAKER_STATES[state]),
    connectionFailed: (reason) => failures.inc({ reason }),
  };
}

/** The bucket that a 429 names, else the first that the request was charged to. */
function bucketOf({ operation, charged }: Exchange): string {
  if (operation === undefined || charged === undefined) return 'none';
  if (charged.outcome === 'denied') return charged.bucket;
  return `${operation.personOnly ? 'person' : 'account'}-${operation.kind}`;
}

function outcomeOf({ charged, refusal }: Exchange): string {
  if (refusal !== undefined && refusal.code !== 'RateLimitExceeded') return refusal.code;
  return charged?.outcome ?? 'free';
}
