/** Values below this have a bin of their own. */
const EXACT = 256;

/** Above it, each doubling has this many bins, for an error of less than 1 %. */
const BINS_PER_DOUBLING = 128;

const EXACT_DOUBLINGS = Math.log2(EXACT);

/** Counts of values. Memory grows with the largest value, not with the number of values. */
export class Histogram {
  #counts = new Uint32Array(8);
  #total = 0;
  #largest = 0;

  get total(): number {
    return this.#total;
  }

  record(value: number): void {
    const bin = binOf(value);
    if (bin >= this.#counts.length) this.#grow(bin);
    this.#counts[bin] = (this.#counts[bin] ?? 0) + 1;
    this.#total += 1;
    if (value > this.#largest) this.#largest = value;
  }

  /** The smallest value that at least this share of the values does not exceed (nearest rank). 0 without values. */
  quantile(share: number): number {
    const rank = Math.max(1, Math.ceil(share * this.#total - 1e-9));
    let seen = 0;
    for (let bin = 0; bin < this.#counts.length; bin++) {
      seen += this.#counts[bin] ?? 0;
      if (seen >= rank) return Math.min(largestOf(bin), this.#largest);
    }
    return 0;
  }

  /** The values in ascending order, each with its count. */
  entries(): readonly (readonly [value: number, count: number])[] {
    const entries: [number, number][] = [];
    this.#counts.forEach((count, bin) => {
      if (count > 0) entries.push([Math.min(largestOf(bin), this.#largest), count]);
    });
    return entries;
  }

  #grow(bin: number): void {
    const counts = new Uint32Array(2 ** Math.ceil(Math.log2(bin + 1)));
    counts.set(this.#counts);
    this.#counts = counts;
  }
}

function binOf(value: number): number {
  if (value < EXACT) return value;
  const doubling = Math.floor(Math.log2(value));
  const within = Math.floor((value / 2 ** doubling - 1) * BINS_PER_DOUBLING);
  return EXACT + (doubling - EXACT_DOUBLINGS) * BINS_PER_DOUBLING + within;
}

/** The largest whole number in a bin. */
function largestOf(bin: number): number {
  if (bin < EXACT) return bin;
  const doubling = Math.floor((bin - EXACT) / BINS_PER_DOUBLING) + EXACT_DOUBLINGS;
  const within = (bin - EXACT) % BINS_PER_DOUBLING;
  return Math.ceil(2 ** doubling * (1 + (within + 1) / BINS_PER_DOUBLING)) - 1;
}
