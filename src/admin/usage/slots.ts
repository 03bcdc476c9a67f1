import { addCounts, type Counts, newSum, type Sum } from './counts.ts';

/** One slot of time, by its number since the clock's zero. */
interface Slot extends Sum {
  readonly number: number;
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
  add(nowMs: number, counts: Counts): void {
    addCounts(this.#slotAt(Math.floor(nowMs / this.#slotMs)), counts);
  }

  /** The sum of the last `slots` slots; the newest is still being filled. */
  sum(nowMs: number, slots = this.#count): Counts {
    const before = Math.floor(nowMs / this.#slotMs) - slots;
    const sum = newSum();
    for (const slot of this.#slots) if (slot.number > before) addCounts(sum, slot);
    return sum;
  }

  #slotAt(number: number): Slot {
    const newest = this.#slots.at(-1);
    if (newest !== undefined && newest.number >= number) return newest;
    while ((this.#slots[0]?.number ?? number) <= number - this.#count) this.#slots.shift();
    const added = { number, ...newSum() };
    this.#slots.push(added);
    return added;
  }
}
