import type { Registry } from 'prom-client';
import { US_PER_SECOND } from '../../domain/clock.ts';
import type { BreakerState, StoreObserver } from '../../store/observer.ts';
import { UNCOUNTED_REASONS } from '../../store/store.ts';
import { PlainHistogram, SECONDS } from './histogram.ts';
import { counter, gauge } from './register.ts';
import { Tally } from './tally.ts';

const BREAKER_STATES = { closed: 0, 'half-open': 1, open: 2 };

const WORST_FIRST: readonly BreakerState[] = ['open', 'half-open', 'closed'];

/** What this process knows of the store. */
export interface StoreTotals {
  /** The worst of its circuit breakers; open as well while the store does not answer at all. */
  readonly breaker: BreakerState;
  /** Calls by duration, in the buckets of `SECONDS`. */
  readonly calls: readonly number[];
  /** Redis settings that allow limits to be exceeded. */
  readonly unsafeSettings: number;
}

export interface StoreMetrics extends StoreObserver {
  storeTotals(): StoreTotals;
  /** The store was asked for an answer that no request depends on. */
  storeMeasured(isAnswering: boolean): void;
}

/** Metrics of the store. */
export function storeMetrics(registry: Registry): StoreMetrics {
  const remembered = new Tally(registry, {
    name: 'weir_denials_remembered_total',
    help: 'Denials answered from memory, without a store call.',
    labelNames: [],
  });
  const failures = counter(
    registry,
    'weir_store_connection_failures_total',
    'Failed connections to the store, by reason.',
    { reason: UNCOUNTED_REASONS },
  );
  const duration = new PlainHistogram(registry, {
    name: 'weir_store_call_duration_seconds',
    help: 'Duration of calls to the store that were answered before the deadline.',
    buckets: SECONDS,
  });
  const decisions = new PlainHistogram(registry, {
    name: 'weir_store_call_decisions',
    help: 'Decisions per call to the store.',
    buckets: [1, 2, 4, 8, 16, 32, 64],
  });
  const unsafe = gauge(
    registry,
    'weir_store_setting_unsafe',
    'Redis settings that allow limits to be exceeded, read on connect: 1 unsafe, 0 safe.',
    ...['route', 'setting'],
  );
  const unsafeSettings = new Set<string>();
  const breakers = breakerMetrics(registry);
  return {
    ...pointMetrics(registry),
    breakerChanged: breakers.changed,
    storeMeasured: breakers.measured,
    storeTotals: () => ({
      breaker: breakers.worst(),
      calls: duration.counts(),
      unsafeSettings: unsafeSettings.size,
    }),
    deniedFromMemory: () => remembered.add(1),
    called(count, roundTripUs) {
      decisions.observe(count);
      duration.observe(roundTripUs / US_PER_SECOND);
    },
    connectionFailed: (reason) => failures.inc({ reason }),
    settingChecked(route, setting, risk) {
      unsafe.set({ route, setting }, risk === undefined ? 0 : 1);
      if (risk === undefined) unsafeSettings.delete(`${route} ${setting}`);
      else unsafeSettings.add(`${route} ${setting}`);
    },
  };
}

/** Metrics of points that were not counted, or that may have been counted for requests served uncounted. */
function pointMetrics(registry: Registry): Pick<StoreObserver, 'uncounted' | 'answeredLate' | 'unanswered'> {
  const uncounted = counter(
    registry,
    'weir_points_uncounted_total',
    'Points of requests that could not be counted, by reason.',
    { reason: UNCOUNTED_REASONS },
  );
  const late = counter(
    registry,
    'weir_points_late_total',
    'Points that the store counted only after the requests had been served uncounted.',
  );
  const unanswered = counter(
    registry,
    'weir_points_unanswered_total',
    'Points of requests served uncounted because the connection to the store closed before its answer. The store may have counted them.',
  );
  return {
    uncounted: (reason, points) => uncounted.inc({ reason }, points),
    answeredLate: (points) => late.inc(points),
    unanswered: (points) => unanswered.inc(points),
  };
}

/** The breakers' states. */
function breakerMetrics(registry: Registry) {
  const breaker = gauge(
    registry,
    'weir_store_breaker_state',
    'Circuit breaker of the store, or of each Cluster master: 0 closed, 1 half-open, 2 open.',
    'route',
  );
  const states = new Map<string, BreakerState>();
  let isAnswering = true;
  /** Without a connection no call is made, so that no breaker opens. */
  const inForce = (state: BreakerState): BreakerState => (isAnswering || state !== 'closed' ? state : 'open');
  /** Of several masters, any may be the one that was asked. */
  const show = () => {
    for (const [route, state] of states)
      breaker.set({ route }, BREAKER_STATES[states.size === 1 ? inForce(state) : state]);
  };
  return {
    worst: () => inForce(WORST_FIRST.find((state) => [...states.values()].includes(state)) ?? 'closed'),
    changed(route: string, state: BreakerState) {
      states.set(route, state);
      show();
    },
    measured(isNowAnswering: boolean) {
      isAnswering = isNowAnswering;
      show();
    },
  };
}
