/** The times that the charts of the fleet cover, and how a replica keeps them. */
import { type Pulse, SERIES, type Second } from './pulse.ts';

/** The seconds of one value of each range. */
export const RANGES = { '1m': 1, '10m': 10, '1h': 60 } as const;

export type Range = keyof typeof RANGES;

/** Values of a range. */
export const RANGE_VALUES = 60;

/** The ranges whose values are sums of several seconds. */
export const LONG_STEPS = [RANGES['10m'], RANGES['1h']] as const;

export function isRange(name: string): name is Range {
  return Object.hasOwn(RANGES, name);
}

/** Adds up what several seconds, or several replicas, came to. */
export function sumOfSeconds(seconds: readonly Second[]): Second {
  const counts = SERIES.map(() => 0);
  const durations: number[] = [];
  for (const second of seconds) {
    add(counts, second.counts);
    add(durations, second.durations);
  }
  return { counts, durations };
}

function add(sums: number[], counts: readonly number[]): void {
  for (let index = 0; index < counts.length; index++) sums[index] = (sums[index] ?? 0) + (counts[index] ?? 0);
}

/** Sums per step, for the length of one chart. */
export class LongRange {
  readonly #stepSeconds;
  #closed: Second[] = [];
  #open = sumOfSeconds([]);
  #slot: number;

  /** @param second the first one that will be added; Unix time */
  constructor(stepSeconds: (typeof LONG_STEPS)[number], second: number) {
    this.#stepSeconds = stepSeconds;
    this.#slot = this.#slotOf(second);
  }

  /** Adds what came of a second. Those that are left out were idle. */
  add(second: number, counted: Second): void {
    this.#turn(this.#slotOf(second));
    this.#open = sumOfSeconds([this.#open, counted]);
    this.#turn(this.#slotOf(second + 1));
  }

  /** Goes on at an earlier second, because the clock was set back. */
  setBack(second: number): void {
    this.#slot = this.#slotOf(second);
  }

  /** @param aheadMs how far the clock of the seconds is ahead of the clock of Redis */
  slices(aheadMs: number): Pulse['history'][number] {
    const endMs = this.#slot * this.#stepSeconds * 1_000 - aheadMs;
    const slot = Math.max(0, Math.round(endMs / 1_000 / this.#stepSeconds) - 1);
    return { stepSeconds: this.#stepSeconds, slot, slices: this.#closed };
  }

  #slotOf(second: number): number {
    return Math.floor(second / this.#stepSeconds);
  }

  #turn(slot: number): void {
    const passed = slot - this.#slot;
    if (passed <= 0) return;
    const idle = Array.from({ length: Math.min(passed - 1, RANGE_VALUES) }, () => sumOfSeconds([]));
    this.#closed = [...this.#closed, this.#open, ...idle].slice(-RANGE_VALUES);
    this.#open = sumOfSeconds([]);
    this.#slot = slot;
  }
}
