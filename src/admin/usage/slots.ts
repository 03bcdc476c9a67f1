/** What an owner's requests came to. */
export interface Counts {
  readonly points: number;
  readonly requests: number;
  readonly refused: number;
}

/** Numbers per slot: points, requests, refused. */
const WIDTH = 3;

/** Counts of the most recent slots of time, in a fixed amount of memory. */
export class Slots {
  readonly #slotMs: number;
  readonly #count: number;
  readonly #counts: Float64Array;
  #newest = 0;

  constructor(slotMs: number, count: number) {
    this.#slotMs = slotMs;
    this.#count = count;
    this.#counts = new Float64Array(count * WIDTH);
  }

  /** A time before the newest slot counts in that slot. */
  add(nowMs: number, { points, requests, refused }: Counts): void {
    this.#advance(nowMs);
    const at = (this.#newest % this.#count) * WIDTH;
    const counts = this.#counts;
    counts[at] = (counts[at] ?? 0) + points;
    counts[at + 1] = (counts[at + 1] ?? 0) + requests;
    counts[at + 2] = (counts[at + 2] ?? 0) + refused;
  }

  /** The sum of the last `slots` slots; the newest is still being filled. */
  sum(nowMs: number, slots = this.#count): Counts {
    this.#advance(nowMs);
    let points = 0;
    let requests = 0;
    let refused = 0;
    for (let back = 0; back < slots && back <= this.#newest; back++) {
      const at = ((this.#newest - back) % this.#count) * WIDTH;
      points += this.#counts[at] ?? 0;
      requests += this.#counts[at + 1] ?? 0;
      refused += this.#counts[at + 2] ?? 0;
    }
    return { points, requests, refused };
  }

  /** Clears the slots that time has passed over. */
  #advance(nowMs: number): void {
    const slot = Math.floor(nowMs / this.#slotMs);
    if (slot <= this.#newest) return;
    if (slot - this.#newest >= this.#count) this.#counts.fill(0);
    else {
      for (let passed = this.#newest + 1; passed <= slot; passed++) {
        const at = (passed % this.#count) * WIDTH;
        this.#counts.fill(0, at, at + WIDTH);
      }
    }
    this.#newest = slot;
  }
}
