export const WINDOWS = ['10s', '1m', '10m'] as const;

export type Window = (typeof WINDOWS)[number];

/** The ten-second slices of each window that has more than one. */
const TENS = { '1m': 6, '10m': 60 } as const;

/** Slices of ten seconds in a series of ten minutes. */
export const SERIES_SLICES = TENS['10m'];

/** What was counted in one slice of time. */
interface Slice {
  /** Number of the second, or of the ten seconds, since the clock's zero. */
  readonly at: number;
}

/** How slices are made and added up. */
export interface SliceKind<Sum extends Slice, Second extends Slice = Sum> {
  /** An empty slice of a second. */
  second(at: number): Second;
  /** An empty sum of several slices. */
  sum(at: number): Sum;
  tenSeconds(at: number): Sum;
  merge(sum: Sum, part: Sum | Second): void;
}

/**
 * The slices of the last ten minutes: one of each recent second, and one of each ten seconds before that. Slices in which nothing
 * was counted take no memory.
 */
export class Windows<Sum extends Slice, Second extends Slice = Sum> {
  readonly #kind: SliceKind<Sum, Second>;
  /** Oldest first, and the newest is being filled. */
  readonly #seconds: Second[] = [];
  readonly #tens: Sum[] = [];
  /** The sum of the seconds of the current ten before the newest, which every window and series needs. */
  #before: Sum | undefined;
  #closedSums: Map<Window, Sum> | undefined;

  constructor(kind: SliceKind<Sum, Second>) {
    this.#kind = kind;
  }

  /** The slice to count in. A time before the newest slice counts in that slice. */
  current(nowMs: number): Second {
    const second = Math.floor(nowMs / 1_000);
    const newest = this.#seconds.at(-1);
    if (newest !== undefined && second <= newest.at) return newest;
    if (newest !== undefined) {
      this.#before ??= this.#kind.sum(newest.at);
      this.#kind.merge(this.#before, newest);
      this.#closeTen(tenOf(newest.at), tenOf(second));
    }
    while ((this.#seconds[0]?.at ?? second) <= second - 10) this.#seconds.shift();
    const added = this.#kind.second(second);
    this.#seconds.push(added);
    return added;
  }

  /** What was counted in a window up to now. A window begins with a whole slice: of a second in `10s`, of ten in the others. */
  sum(window: Window, nowMs: number): Sum {
    const newest = this.current(nowMs);
    const ten = tenOf(newest.at);
    const sum = this.#kind.sum(newest.at);
    this.#addCurrentTen(sum, newest);
    if (window !== '10s') this.#kind.merge(sum, this.#closedSum(window, ten));
    else for (const slice of this.#seconds) if (tenOf(slice.at) < ten) this.#kind.merge(sum, slice);
    return sum;
  }

  /** What was counted in each ten seconds of the last ten minutes, oldest first; the newest is being filled. */
  series(nowMs: number): readonly Sum[] {
    const second = this.current(nowMs);
    const newest = this.#kind.tenSeconds(tenOf(second.at));
    this.#addCurrentTen(newest, second);
    const closed = new Map(this.#tens.map((slice) => [slice.at, slice]));
    const before = Array.from({ length: SERIES_SLICES - 1 }, (_, index) => {
      const ten = newest.at - SERIES_SLICES + 1 + index;
      return closed.get(ten) ?? this.#kind.tenSeconds(ten);
    });
    return [...before, newest];
  }

  #addCurrentTen(sum: Sum, newest: Second): void {
    if (this.#before !== undefined) this.#kind.merge(sum, this.#before);
    this.#kind.merge(sum, newest);
  }

  /** The closed slices of a window, which change only every ten seconds. */
  #closedSum(window: '1m' | '10m', ten: number): Sum {
    const known = this.#closedSums?.get(window);
    if (known !== undefined) return known;
    const sum = this.#kind.sum(ten);
    for (const slice of this.#tens) if (slice.at > ten - TENS[window]) this.#kind.merge(sum, slice);
    this.#closedSums ??= new Map();
    this.#closedSums.set(window, sum);
    return sum;
  }

  #closeTen(closed: number, ten: number): void {
    if (ten === closed) return;
    this.#closedSums = undefined;
    const sum = this.#kind.tenSeconds(closed);
    if (this.#before !== undefined) this.#kind.merge(sum, this.#before);
    this.#before = undefined;
    this.#tens.push(sum);
    while ((this.#tens[0]?.at ?? ten) <= ten - TENS['10m']) this.#tens.shift();
  }
}

function tenOf(second: number): number {
  return Math.floor(second / 10);
}
