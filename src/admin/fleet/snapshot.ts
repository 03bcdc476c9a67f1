import type { Top } from '../top/talkers.ts';
import { type Counts, PULSE_SECONDS, type Pulse, SERIES, type Second, type StoreHealth } from './pulse.ts';
import { quantileMs } from './quantile.ts';
import { mostRecent, type RefusedRequest } from './refusals.ts';

/** Shares and percentiles cover this many seconds, rates this many: a rate of one second is too restless to read. */
const SHARE_SECONDS = 10;
const RATE_SECONDS = 5;

/** What requests came to lately. */
export interface Rates {
  readonly requestsPerSecond: number;
  readonly pointsPerSecond: number;
  /** Shares of the requests, from 0 to 1. */
  readonly refusedShare: number;
  readonly degradedShare: number;
  readonly failedShare: number;
  /** Null without requests. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

export interface ReplicaState {
  readonly id: string;
  readonly name: string;
  readonly startedAtMs: number;
  readonly isReady: boolean;
  readonly limits: string;
  readonly liveLimits: number;
  readonly store: StoreHealth;
  readonly rates: Rates;
}

/** The answer to `GET /fleet`. */
export interface FleetSnapshot {
  /** Unix second of the last entry of each series. */
  readonly second: number;
  /** Since each of the replicas started. */
  readonly totals: Counts;
  readonly rates: Rates;
  /** The fleet's last minute, one number for each second, oldest first. */
  readonly series: Readonly<Record<(typeof SERIES)[number], readonly number[]>> & {
    readonly p50Ms: readonly (number | null)[];
    readonly p99Ms: readonly (number | null)[];
  };
  /** By name. */
  readonly replicas: readonly ReplicaState[];
  readonly top: Top;
  /** Of all Accounts, newest first. */
  readonly refusals: readonly RefusedRequest[];
}

/** A second of the fleet is complete once every replica has published it. */
const PUBLICATION_SECONDS = 2;

/** A replica whose last second differs by more than this has another clock, and its last second is taken for the fleet's. */
const CLOCK_SECONDS = 4;

const MAX_REFUSALS = 50;

/** Adds up what the replicas published. */
export function fleetSnapshot(pulses: ReadonlyMap<string, Pulse>, top: Top, nowMs: number): FleetSnapshot {
  const all = [...pulses.values()];
  const second = Math.floor(nowMs / 1_000) - PUBLICATION_SECONDS;
  const fleet = Array.from({ length: PULSE_SECONDS }, (_, index) =>
    sum(all.map((pulse) => secondOf(pulse, second - PULSE_SECONDS + 1 + index, second))),
  );
  const series = (index: number) => fleet.map(({ counts }) => counts[index] ?? 0);
  const bySeries = <T>(pick: (index: number) => T) =>
    Object.fromEntries(SERIES.map((one, index) => [one, pick(index)])) as Record<(typeof SERIES)[number], T>;
  return {
    second,
    totals: bySeries((index) =>
      all.reduce((total, { totals }) => total + totals[SERIES[index] ?? 'requests'], 0),
    ),
    rates: ratesOf(all),
    series: {
      ...bySeries(series),
      p50Ms: fleet.map(({ durations }) => quantileMs(durations, 0.5)),
      p99Ms: fleet.map(({ durations }) => quantileMs(durations, 0.99)),
    },
    replicas: [...pulses].map(([id, pulse]) => stateOf(id, pulse)).sort(byName),
    top,
    refusals: mostRecent(
      all.flatMap(({ refusals }) => refusals),
      MAX_REFUSALS,
    ),
  };
}

function stateOf(id: string, pulse: Pulse): ReplicaState {
  const { name, startedAtMs, isReady, limits, liveLimits, store } = pulse;
  return { id, name, startedAtMs, isReady, limits, liveLimits, store, rates: ratesOf([pulse]) };
}

function byName(a: ReplicaState, b: ReplicaState): number {
  return a.name.localeCompare(b.name) || a.startedAtMs - b.startedAtMs || a.id.localeCompare(b.id);
}

/** What a replica counted in a second of the fleet. */
function secondOf(pulse: Pulse, wanted: number, newest: number): Second | undefined {
  const offset = pulse.second - newest;
  const clockOffset = Math.abs(offset) > CLOCK_SECONDS ? offset : 0;
  const back = pulse.second - (wanted + clockOffset);
  return back < 0 ? undefined : pulse.seconds.at(-1 - back);
}

function sum(seconds: readonly (Second | undefined)[]): Second {
  const counts = SERIES.map(() => 0);
  const durations: number[] = [];
  for (const second of seconds) {
    for (const [index, count] of second?.counts.entries() ?? []) counts[index] = (counts[index] ?? 0) + count;
    for (const [index, count] of second?.durations.entries() ?? [])
      durations[index] = (durations[index] ?? 0) + count;
  }
  return { counts, durations: Array.from(durations, (count) => count ?? 0) };
}

/** Over each replica's own last seconds, regardless of their clocks. */
function ratesOf(pulses: readonly Pulse[]): Rates {
  const last = (count: number) => pulses.flatMap(({ seconds }) => seconds.slice(-count));
  const [requests = 0, , refused = 0, degraded = 0, failed = 0] = sum(last(SHARE_SECONDS)).counts;
  const { durations } = sum(last(SHARE_SECONDS));
  const perSecond = (index: number) =>
    pulses.reduce((rate, { seconds }) => {
      const recent = seconds.slice(-RATE_SECONDS);
      return rate + (sum(recent).counts[index] ?? 0) / Math.max(1, recent.length);
    }, 0);
  return {
    requestsPerSecond: perSecond(0),
    pointsPerSecond: perSecond(1),
    refusedShare: refused / Math.max(1, requests),
    degradedShare: degraded / Math.max(1, requests),
    failedShare: failed / Math.max(1, requests),
    p50Ms: quantileMs(durations, 0.5),
    p99Ms: quantileMs(durations, 0.99),
  };
}
