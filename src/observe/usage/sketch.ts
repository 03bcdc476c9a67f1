import { addCounts, type Counts, newSum, type Sum } from './counts.ts';

/** What one owner's requests came to, as far as a sketch has counted them. */
export interface OwnerCounts extends Sum {
  /** Points, refusals or requests that may have gone uncounted before the owner was first, or again, in the sketch. */
  error: number;
}

/**
 * The owners with the most points, refusals and requests, in bounded memory (the frequent-items sketch of Misra and Gries, pruned
 * in batches). At most twice `capacity` owners are held; then those with the least weight are dropped. The weight is the points plus
 * the refusals, or the requests where these are more, as they are while the store counts no points. The true weight of an owner is at
 * least what is counted, and at most that plus `error`; the weight of an owner that is not held is at most `floor`. Up to `capacity`
 * owners, all of it is exact.
 */
export class Sketch {
  readonly owners = new Map<string, OwnerCounts>();
  readonly #capacity: number;
  #floor = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get floor(): number {
    return this.#floor;
  }

  add(owner: string, counts: Counts): void {
    addCounts(this.#countsOf(owner), counts);
    if (this.owners.size >= 2 * this.#capacity) this.#prune();
  }

  /** Adds all that another sketch has counted. */
  merge(other: Pick<Sketch, 'owners' | 'floor'>): void {
    if (other.floor > 0) {
      for (const [owner, counts] of this.owners) if (!other.owners.has(owner)) counts.error += other.floor;
    }
    for (const [owner, added] of other.owners) {
      const counts = this.#countsOf(owner);
      addCounts(counts, added);
      counts.error += added.error;
    }
    this.#floor += other.floor;
    if (this.owners.size > 2 * this.#capacity) this.#prune();
  }

  #countsOf(owner: string): OwnerCounts {
    let counts = this.owners.get(owner);
    if (counts === undefined) {
      counts = { ...newSum(), error: this.#floor };
      this.owners.set(owner, counts);
    }
    return counts;
  }

  #prune(): void {
    const byWeight = [...this.owners].sort(([, a], [, b]) => weightOf(b) - weightOf(a));
    for (const [owner, counts] of byWeight.slice(this.#capacity)) {
      this.#floor = Math.max(this.#floor, weightOf(counts));
      this.owners.delete(owner);
    }
  }
}

/** At most this weight, `error` included. */
export function weightOf({ points, requests, refused, error }: OwnerCounts): number {
  return Math.max(points + refused, requests) + error;
}
