import { addCounts, type Counts, newSum, type Sum } from '../usage/counts.ts';

/** What one owner's requests came to, as far as a sketch has counted them. */
export interface Tally extends Sum {
  /** Points or refusals that may have gone uncounted before the owner was first, or again, in the sketch. */
  error: number;
}

/**
 * The owners with the most points and refusals, in bounded memory (the frequent-items sketch of Misra and Gries, pruned in
 * batches). At most twice `capacity` owners are held; then those with the least weight, points plus refusals, are
 * dropped. The true weight of an owner is at least what its tally has counted, and at most that plus `error`; the weight
 * of an owner that is not held is at most `floor`. Up to `capacity` owners, all of it is exact.
 */
export class Sketch {
  readonly tallies = new Map<string, Tally>();
  readonly #capacity: number;
  #floor = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get floor(): number {
    return this.#floor;
  }

  add(owner: string, counts: Counts): void {
    addCounts(this.#tallyOf(owner), counts);
    if (this.tallies.size >= 2 * this.#capacity) this.#prune();
  }

  /** Adds all that another sketch has counted. */
  merge(other: Pick<Sketch, 'tallies' | 'floor'>): void {
    if (other.floor > 0) {
      for (const [owner, tally] of this.tallies) if (!other.tallies.has(owner)) tally.error += other.floor;
    }
    for (const [owner, added] of other.tallies) {
      const tally = this.#tallyOf(owner);
      addCounts(tally, added);
      tally.error += added.error;
    }
    this.#floor += other.floor;
    if (this.tallies.size > 2 * this.#capacity) this.#prune();
  }

  #tallyOf(owner: string): Tally {
    let tally = this.tallies.get(owner);
    if (tally === undefined) {
      tally = { ...newSum(), error: this.#floor };
      this.tallies.set(owner, tally);
    }
    return tally;
  }

  #prune(): void {
    const byWeight = [...this.tallies].sort(([, a], [, b]) => weightOf(b) - weightOf(a));
    for (const [owner, tally] of byWeight.slice(this.#capacity)) {
      this.#floor = Math.max(this.#floor, weightOf(tally));
      this.tallies.delete(owner);
    }
  }
}

/** At most this weight: points and refusals, uncounted ones included. */
export function weightOf({ points, refused, error }: Tally): number {
  return points + refused + error;
}
