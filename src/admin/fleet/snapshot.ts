import { unknownSince } from '../console/browser/widgets/freshness.ts';
import type { FleetReading, FleetTop } from './fleet.ts';
import { mergedChanges } from './merged-changes.ts';
import { PULSE_SECONDS, type Pulse, quantileMs, SERIES, type Second } from './pulse.ts';
import { mostRecent } from './refusals.ts';

/** Shares and percentiles cover this many seconds, rates this many: a rate of one second is too restless to read. */
const SHARE_SECONDS = 10;
const RATE_SECONDS = 5;

/** The answer to `GET /fleet`. */
export type FleetSnapshot = ReturnType<typeof fleetSnapshot>;

/** One replica of the fleet. */
export type ReplicaState = FleetSnapshot['replicas'][number];

/** A second of the fleet is complete once every replica has published it. */
const PUBLICATION_SECONDS = 2;

/** A replica whose last second differs by more than this has another clock, and its last second is taken for the fleet's. */
const CLOCK_SECONDS = 4;

const MAX_REFUSALS = 50;

/** Adds up what the replicas published. */
export function fleetSnapshot(
  { pulses, nowMs, othersUnknownSinceMs }: Pick<FleetReading, 'pulses' | 'nowMs' | 'othersUnknownSinceMs'>,
  top: FleetTop,
) {
  const all = [...pulses.values()];
  const fresh = all.filter((pulse) => unknownSince(pulse.takenAtMs, nowMs) === null);
  const second = Math.floor(nowMs / 1_000) - PUBLICATION_SECONDS;
  const fleet = Array.from({ length: PULSE_SECONDS }, (_, index) =>
    sum(
      all.map((pulse) =>
        secondOf(pulse, second - PULSE_SECONDS + 1 + index, fresh.includes(pulse) ? second : undefined),
      ),
    ),
  );
  const series = (index: number) => fleet.map(({ counts }) => counts[index] ?? 0);
  const bySeries = <T>(pick: (index: number) => T) =>
    Object.fromEntries(SERIES.map((one, index) => [one, pick(index)])) as Record<(typeof SERIES)[number], T>;
  return {
    /** Unix second of the last entry of each series. */
    second,
    /** Unix time in milliseconds, by the clock of Redis. */
    asOfMs: nowMs,
    /** Since when Redis cannot be read, and so what other replicas there are is unknown; null while it can. */
    othersUnknownSinceMs,
    /** Since each of the replicas started whose state is known. The rates are theirs as well. */
    totals: bySeries((index) =>
      fresh.reduce((total, { totals }) => total + totals[SERIES[index] ?? 'requests'], 0),
    ),
    rates: ratesOf(fresh),
    /** The fleet's last minute, one number for each second, oldest first. */
    series: {
      ...bySeries(series),
      p50Ms: fleet.map(({ durations }) => quantileMs(durations, 0.5)),
      p99Ms: fleet.map(({ durations }) => quantileMs(durations, 0.99)),
    },
    /** By name. */
    replicas: [...pulses].map(([id, pulse]) => stateOf(id, pulse, nowMs)).sort(byName),
    top,
    /** Newest first, each with the number of replicas that saw it. */
    changes: mergedChanges(all),
    /** Of all Accounts, newest first. */
    refusals: mostRecent(
      all.flatMap(({ refusals }) => refusals),
      MAX_REFUSALS,
    ),
  };
}

function stateOf(id: string, pulse: Pulse, nowMs: number) {
  const { format: _, totals, second, seconds, refusals, changes, store, ...state } = pulse;
  const unknownSinceMs = unknownSince(pulse.takenAtMs, nowMs);
  return {
    id,
    ...state,
    /** Null while the replica publishes. */
    unknownSinceMs,
    /** A store that has not answered yet, nor failed to in time, is unknown as well. */
    store: { ...store, unknownSinceMs: unknownSinceMs ?? unknownSince(store.measuredAtMs, nowMs) },
    rates: ratesOf([pulse]),
  };
}

function byName(a: ReturnType<typeof stateOf>, b: ReturnType<typeof stateOf>): number {
  return a.name.localeCompare(b.name) || a.startedAtMs - b.startedAtMs || a.id.localeCompare(b.id);
}

/**
 * What a replica counted in a second of the fleet.
 *
 * @param newest the fleet's last second; undefined for a replica that no longer publishes
 */
function secondOf(pulse: Pulse, wanted: number, newest: number | undefined): Second | undefined {
  const offset = newest === undefined ? 0 : pulse.second - newest;
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

/** What requests came to lately, over each replica's own last seconds, regardless of their clocks. Shares are from 0 to 1. */
function ratesOf(pulses: readonly Pulse[]) {
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
    /** Null without requests. */
    p50Ms: quantileMs(durations, 0.5),
    p99Ms: quantileMs(durations, 0.99),
  };
}
