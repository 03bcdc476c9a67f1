import type { Counts } from './counts.ts';
import { type CountedOwner, OpenSketch } from './open-sketch.ts';
import { Sketch } from './sketch.ts';
import { type Window, Windows } from './windows.ts';

/** Owners counted exactly within one second, and within ten. */
const SECOND_CAPACITY = 1_000;
const TEN_SECONDS_CAPACITY = 500;

interface SketchSlice<Kind> {
  readonly at: number;
  readonly sketch: Kind;
}

/** The sketches of the last ten minutes. */
export class History {
  readonly #windows = new Windows<SketchSlice<Sketch>, SketchSlice<OpenSketch>>({
    second: (at) => ({ at, sketch: new OpenSketch(SECOND_CAPACITY) }),
    sum: (at) => ({ at, sketch: new Sketch(SECOND_CAPACITY) }),
    tenSeconds: (at) => ({ at, sketch: new Sketch(TEN_SECONDS_CAPACITY) }),
    merge: (sum, part) => sum.sketch.merge(part.sketch),
  });
  #open: OpenSketch | undefined;

  add(nowMs: number, owner: CountedOwner, counts: Counts, organization?: string): void {
    const { sketch } = this.#windows.current(nowMs);
    if (sketch !== this.#open) {
      this.#open?.close();
      this.#open = sketch;
    }
    sketch.add(owner, counts, organization);
  }

  /** What an owner did in each ten seconds of the last ten minutes, oldest first, without the ten that are being counted. */
  trendsOf(owners: Iterable<string>, count: keyof Counts, nowMs: number): Readonly<Record<string, number[]>> {
    const slices = this.#windows.series(nowMs).slice(0, -1);
    return Object.fromEntries(
      [...owners].map((owner) => {
        const values = slices.map(({ sketch }) => sketch.owners.get(owner)?.[count] ?? 0);
        const first = values.findIndex((value) => value > 0);
        return [owner, first === -1 ? [] : values.slice(first)];
      }),
    );
  }

  /** What was counted in a window up to now. */
  sum(window: Window, nowMs: number): Sketch {
    return this.#windows.sum(window, nowMs).sketch;
  }
}
