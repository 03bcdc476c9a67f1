import type { Counts } from '../usage/counts.ts';
import { type Window, Windows } from '../usage/windows.ts';
import { Sketch } from './sketch.ts';

/** Owners counted exactly within one second, and within ten. */
const SECOND_CAPACITY = 1_000;
const TEN_SECONDS_CAPACITY = 500;

interface SketchSlice {
  readonly at: number;
  readonly sketch: Sketch;
}

/** The sketches of the last ten minutes. */
export class History {
  readonly #windows = new Windows<SketchSlice>({
    second: (at) => ({ at, sketch: new Sketch(SECOND_CAPACITY) }),
    tenSeconds: (at) => ({ at, sketch: new Sketch(TEN_SECONDS_CAPACITY) }),
    merge: (sum, part) => sum.sketch.merge(part.sketch),
  });

  add(nowMs: number, owner: string, counts: Counts): void {
    this.#windows.current(nowMs).sketch.add(owner, counts);
  }

  /** What was counted in a window up to now. */
  sum(window: Window, nowMs: number): Sketch {
    return this.#windows.sum(window, nowMs).sketch;
  }
}
