import { unknownSince } from '../freshness.ts';
import { causeOf } from './cause.ts';
import type { FleetReading, FleetTop } from './fleet.ts';
import { mergedChanges, type Pulse, quantileMs, SERIES, type Second } from './pulse.ts';
import { RANGE_VALUES, RANGES, type Range, sumOfSeconds } from './ranges.ts';
import { mostRecent } from './refusals.ts';

/** Shares and percentiles cover this many seconds, rates this many: a rate of one second is too restless to read. */
const SHARE_SECONDS = 10;
const RATE_SECONDS = 5;

/** The answer to `GET /fleet`. */
export type FleetSnapshot = ReturnType<typeof fleetSnapshot>;

/** The part of it that the page of an owner shows. */
export type FleetChanges = Pick<FleetSnapshot, 'second' | 'changes'>;

/** One replica of the fleet. */
export type ReplicaState = FleetSnapshot['replicas'][number];

/** A second of the fleet is complete once every replica has published it. */
const PUBLICATION_SECONDS = 2;

/** A replica whose last second differs by more than this has another clock, and its last second is taken for the fleet's. */
const CLOCK_SECONDS = 4;

const MAX_REFUSALS = 50;

/** A replica that was lost, or that lost the store. */
export interface Loss {
  readonly what: 'replica' | 'store';
  /** The host name of the replica. */
  readonly replica: string;
  /** Distinguishes replicas that share a host name. */
  readonly instance: string | undefined;
  /** Unix time by the clock of Redis. */
  readonly atMs: number;
  /** Null until it is back. */
  readonly backAtMs: number | null;
}

/** What was lost, and nobody has seen yet. */
export interface Losses {
  /** Newest first, at most 20. */
  readonly latest: readonly Loss[];
  readonly count: number;
  /** The time up to which a reader has seen what was recorded. */
  readonly untilMs: number;
}

export const NO_LOSSES: Losses = { latest: [], count: 0, untilMs: 0 };

/** Adds up what the replicas published. */
export function fleetSnapshot(
  { pulses, nowMs, othersUnknownSinceMs }: Pick<FleetReading, 'pulses' | 'nowMs' | 'othersUnknownSinceMs'>,
  shown: {
    readonly top: FleetTop;
    /** The ranking of the last ten seconds; missing if `top` is that ranking. */
    readonly recent?: FleetTop;
    readonly range?: Range;
    readonly losses?: Losses;
  },
) {
  const { top, recent = top, range = '1m', losses = NO_LOSSES } = shown;
  const all = [...pulses.values()];
  const fresh = all.filter((pulse) => unknownSince(pulse.takenAtMs, nowMs) === null);
  const rates = ratesOf(fresh);
  const refusals = mostRecent(
    all.flatMap((pulse) => pulse.refusals),
    MAX_REFUSALS,
  );
  return {
    /** Unix second of the last entry of a series of seconds. */
    second: lastSecond(nowMs),
    /** Unix time in milliseconds, by the clock of Redis. */
    asOfMs: nowMs,
    /** Since when Redis cannot be read, and so what other replicas there are is unknown; null while it can. */
    othersUnknownSinceMs,
    /** Totals since start, of the replicas whose state is known. Rates cover the same replicas. */
    totals: bySeries((index) =>
      fresh.reduce((total, { totals }) => total + totals[SERIES[index] ?? 'requests'], 0),
    ),
    rates,
    /** Who was refused most in the last ten seconds; null if nobody was. */
    cause: causeOf(recent, rates.refused, refusals) ?? null,
    series: seriesOf(all, fresh, nowMs, othersUnknownSinceMs, range),
    /** By name. */
    replicas: [...pulses].map(([id, pulse]) => stateOf(id, pulse, nowMs)).sort(byName),
    top,
    /** Newest first, each with the number of replicas that saw it. */
    changes: mergedChanges(all),
    /** Of all Accounts, newest first. */
    refusals,
    /** What was lost, and nobody has seen yet. */
    losses,
  };
}

/** The changes of the fleet, newest first, and the second of now by which a chart places them. */
export function fleetChanges({ pulses, nowMs }: Pick<FleetReading, 'pulses' | 'nowMs'>): FleetChanges {
  return { second: lastSecond(nowMs), changes: mergedChanges([...pulses.values()]) };
}

/** The last second that every replica has published. */
function lastSecond(nowMs: number): number {
  return Math.floor(nowMs / 1_000) - PUBLICATION_SECONDS;
}

function bySeries<T>(pick: (index: number) => T) {
  return Object.fromEntries(SERIES.map((one, index) => [one, pick(index)])) as Record<
    (typeof SERIES)[number],
    T
  >;
}

/** What the fleet did in each step of a range. */
function seriesOf(
  all: readonly Pulse[],
  fresh: readonly Pulse[],
  nowMs: number,
  othersUnknownSinceMs: number | null,
  range: Range,
) {
  const step = RANGES[range];
  const second = lastSecond(nowMs);
  const last = Math.floor((second + 1) / step) - 1;
  const parts = Array.from({ length: RANGE_VALUES }, (_, index) => {
    const wanted = last - RANGE_VALUES + 1 + index;
    return all.flatMap((pulse) => {
      const found =
        step === 1
          ? secondOf(pulse, wanted, fresh.includes(pulse) ? second : undefined)
          : sliceOf(pulse, step, wanted);
      return found ?? [];
    });
  });
  const sums = parts.map((part) => (part.length === 0 ? undefined : sumOfSeconds(part)));
  const endSecond = (last + 1) * step;
  const missingMs = [
    ...all.filter((pulse) => !fresh.includes(pulse)).map(({ takenAtMs }) => takenAtMs),
    ...(othersUnknownSinceMs === null ? [] : [othersUnknownSinceMs]),
  ];
  const partial = (endSecond * 1_000 - Math.min(...missingMs)) / 1_000 / step;
  return {
    stepSeconds: step,
    /** Unix time at which the last step ended. */
    endSecond,
    /** So many of the newest steps lack replicas whose counts are unknown. */
    partialSteps: missingMs.length === 0 ? 0 : Math.max(0, Math.min(RANGE_VALUES, Math.ceil(partial))),
    /** Per second, oldest first; null before any of the replicas ran. */
    ...bySeries((index) => sums.map((one) => (one === undefined ? null : (one.counts[index] ?? 0) / step))),
    p50Ms: sums.map((one) => quantileMs(one?.durations ?? [], 0.5)),
    p99Ms: sums.map((one) => quantileMs(one?.durations ?? [], 0.99)),
  };
}

function sliceOf({ history }: Pulse, step: number, wanted: number): Second | undefined {
  const found = history.find(({ stepSeconds }) => stepSeconds === step);
  const back = found === undefined ? -1 : found.slot - wanted;
  return back < 0 ? undefined : found?.slices.at(-1 - back);
}

function stateOf(id: string, pulse: Pulse, nowMs: number) {
  const { format: _, totals, second, seconds, history, refusals, changes, store, ...state } = pulse;
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

/** What requests came to lately, over each replica's own last seconds, regardless of their clocks. Shares are from 0 to 1. */
function ratesOf(pulses: readonly Pulse[]) {
  const last = pulses.flatMap(({ seconds }) => seconds.slice(-SHARE_SECONDS));
  const { counts, durations } = sumOfSeconds(last);
  const [requests = 0, , refused = 0, degraded = 0, failed = 0] = counts;
  const recent = pulses.map(({ seconds }) => seconds.slice(-RATE_SECONDS));
  const perSecond = (index: number) =>
    recent.reduce((rate, some) => {
      const sum = some.reduce((total, one) => total + (one.counts[index] ?? 0), 0);
      return rate + sum / Math.max(1, some.length);
    }, 0);
  return {
    requestsPerSecond: perSecond(0),
    pointsPerSecond: perSecond(1),
    /** In the last ten seconds. */
    refused,
    refusedShare: refused / Math.max(1, requests),
    degradedShare: degraded / Math.max(1, requests),
    failedShare: failed / Math.max(1, requests),
    /** Null without requests. */
    p50Ms: quantileMs(durations, 0.5),
    p99Ms: quantileMs(durations, 0.99),
  };
}
