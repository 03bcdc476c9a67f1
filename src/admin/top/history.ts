import type { Counts } from '../usage/counts.ts';
import { Sketch } from './sketch.ts';

export const WINDOWS = ['10s', '1m', '10m'] as const;

export type Window = (typeof WINDOWS)[number];

/** Owners counted exactly within one second, and within ten. */
const SECOND_CAPACITY = 1_000;
const TEN_SECONDS_CAPACITY = 500;

/** The ten-second slices of the longest window. */
const SLICES = 60;
const SLICES_PER_MINUTE = 6;

interface Slice {
  /** Number of the second, or of the ten seconds, since the clock's zero. */
  readonly at: number;
  readonly sketch: Sketch;
}

/** The sketches of the last ten minutes: one of each recent second, and one of each ten seconds before that. */
export class History {
  #seconds: Slice[] = [];
  #tens: Slice[] = [];
  readonly #closedSums = new Map<Window, Sketch>();
  #newest: Slice = { at: -1, sketch: new Sketch(SECOND_CAPACITY) };

  add(nowMs: number, owner: string, counts: Counts): void {
    this.#advance(nowMs);
    this.#newest.sketch.add(owner, counts);
  }

  /** What was counted in a window up to now. A window begins with a whole slice: of a second in `10s`, of ten in the others. */
  sum(window: Window, nowMs: number): Sketch {
    this.#advance(nowMs);
    const second = this.#newest.at;
    const ten = Math.floor(second / 10);
    const sum = new Sketch(SECOND_CAPACITY);
    const from = window === '10s' ? second - 9 : ten * 10;
    for (const { at, sketch } of this.#seconds) if (at >= from) sum.merge(sketch);
    if (window === '10s') return sum;
    sum.merge(this.#closedSum(window, ten));
    return sum;
  }

  /** The closed slices of a window, which change only every ten seconds. */
  #closedSum(window: '1m' | '10m', ten: number): Sketch {
    const known = this.#closedSums.get(window);
    if (known !== undefined) return known;
    const count = window === '1m' ? SLICES_PER_MINUTE : SLICES;
    const sum = new Sketch(SECOND_CAPACITY);
    for (const { at, sketch } of this.#tens) if (at > ten - count) sum.merge(sketch);
    this.#closedSums.set(window, sum);
    return sum;
  }

  #advance(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    if (second <= this.#newest.at) return;
    const ten = Math.floor(second / 10);
    const lastTen = Math.floor(this.#newest.at / 10);
    if (ten > lastTen) this.#closeTen(lastTen, ten);
    this.#newest = { at: second, sketch: new Sketch(SECOND_CAPACITY) };
    this.#seconds = [...this.#seconds.filter(({ at }) => at > second - 10), this.#newest];
  }

  #closeTen(closed: number, ten: number): void {
    this.#closedSums.clear();
    const sketch = new Sketch(TEN_SECONDS_CAPACITY);
    for (const slice of this.#seconds) if (Math.floor(slice.at / 10) === closed) sketch.merge(slice.sketch);
    this.#tens = [...this.#tens, { at: closed, sketch }].filter(({ at }) => at > ten - SLICES);
  }
}
