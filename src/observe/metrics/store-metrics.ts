import { US_PER_SECOND } from '../../domain/clock.ts';
import type { BreakerState, StoreObserver } from '../../store/store-observer.ts';
import type { MetricTable } from './metric-table.ts';

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

/** Feeds the metrics of the store. */
export function storeMetrics(table: MetricTable): StoreMetrics {
  const unsafeSettings = new Set<string>();
  const breakers = new Breakers(table.weir_store_breaker_state);
  return {
    uncounted: (reason, points) => table.weir_points_uncounted_total.add(points, reason),
    answeredLate: (points) => table.weir_points_late_total.add(points),
    unanswered: (points) => table.weir_points_unanswered_total.add(points),
    deniedFromMemory: () => table.weir_denials_remembered_total.add(1),
    settled(outcome, overPoints) {
      table.weir_settlements_total.add(1, outcome);
      if (overPoints > 0) table.weir_settled_over_points_total.add(overPoints);
    },
    settlementDropped: (reason) => table.weir_settlements_dropped_total.add(1, reason),
    connectionFailed: (reason) => table.weir_store_connection_failures_total.add(1, reason),
    called(decisions, roundTripUs) {
      table.weir_store_call_decisions.observe(decisions);
      table.weir_store_call_duration_seconds.observe(roundTripUs / US_PER_SECOND);
    },
    settingChecked(route, setting, risk) {
      table.weir_store_setting_unsafe.set({ route, setting }, risk === undefined ? 0 : 1);
      if (risk === undefined) unsafeSettings.delete(`${route} ${setting}`);
      else unsafeSettings.add(`${route} ${setting}`);
    },
    breakerChanged: (route, state) => breakers.changed(route, state),
    storeMeasured: (isAnswering) => breakers.measured(isAnswering),
    storeTotals: () => ({
      breaker: breakers.worst,
      calls: table.weir_store_call_duration_seconds.counts(),
      unsafeSettings: unsafeSettings.size,
    }),
  };
}

/** The breakers' states. */
class Breakers {
  readonly #gauge: MetricTable['weir_store_breaker_state'];
  readonly #states = new Map<string, BreakerState>();
  #isAnswering = true;

  constructor(gauge: MetricTable['weir_store_breaker_state']) {
    this.#gauge = gauge;
  }

  get worst(): BreakerState {
    const states = [...this.#states.values()];
    return this.#inForce(WORST_FIRST.find((state) => states.includes(state)) ?? 'closed');
  }

  changed(route: string, state: BreakerState): void {
    this.#states.set(route, state);
    this.#show();
  }

  measured(isAnswering: boolean): void {
    this.#isAnswering = isAnswering;
    this.#show();
  }

  /** Without a connection no call is made, so that no breaker opens. */
  #inForce(state: BreakerState): BreakerState {
    return this.#isAnswering || state !== 'closed' ? state : 'open';
  }

  /** Of several masters, any may be the one that was asked. */
  #show(): void {
    const isAlone = this.#states.size === 1;
    for (const [route, state] of this.#states)
      this.#gauge.set({ route }, BREAKER_STATES[isAlone ? this.#inForce(state) : state]);
  }
}
