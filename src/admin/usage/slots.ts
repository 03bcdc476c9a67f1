/** What an owner's requests came to. */
export interface Counts {
  readonly points: number;
  readonly requests: number;
  readonly refused: number;
}

/** One slot of time, by its number since the clock's zero. */
interface Slot {
  readonly number: number;
  points: number;
  requests: number;
  refused: number;
}

/** Counts of the most recent slots of time. Slots without requests take no memory. */
export class Slots {
  readonly #slotMs: number;
  readonly #count: number;
  /** Oldest first. */
  readonly #slots: Slot[] = [];

  constructor(slotMs: number, count: number) {
    this.#slotMs = slotMs;
    this.#count = count;
  }

  /** A time before the newest slot counts in that slot. */
  add(nowMs: number, { points, requests, refused }: Counts): void {
    const slot = this.#slotAt(Math.floor(nowMs / this.#slotMs));
    slot.points += points;
    slot.requests += requests;
    slot.refused += refused;
  }

  /** The sum of the last `slots` slots; the newest is still being filled. */
  sum(nowMs: number, slots = this.#count): Counts {
    const before = Math.floor(nowMs / this.#slotMs) - slots;
    const sum = { points: 0, requests: 0, refused: 0 };
    for (const { number, points, requests, refused } of this.#slots) {
      if (number <= before) continue;
      sum.points += points;
      sum.requests += requests;
      sum.refused += refused;
    }
    return sum;
  }

  #slotAt(number: number): Slot {
    const newest = this.#slots.at(-1);
    if (newest !== undefined && newest.number >= number) return newest;
    while ((this.#slots[0]?.number ?? number) <= number - this.#count) this.#slots.shift();
    const added = { number, points: 0, requests: 0, refused: 0 };
    this.#slots.push(added);
    return added;
  }
}
