import { addCounts, type Counts, type Sum } from './counts.ts';

/** What one owner's requests came to, as far as a sketch has counted them. */
export interface OwnerCounts extends Sum {
  /** Points, refusals or requests that may have gone uncounted before the owner was first, or again, in the sketch. */
  error: number;
  /** Of an Account that was counted with one. */
  organization: string | undefined;
}

/** Dropped counts that a sketch keeps, to use them again. */
const MOST_SPARE = 1_000;

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
  /** New counts would live long enough to be moved to V8's old generation, whose collections take longer. */
  readonly #spare: OwnerCounts[] = [];
  #floor = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get floor(): number {
    return this.#floor;
  }

  /** @param organization of an Account that has one */
  add(owner: string, added: Counts, organization?: string): void {
    const counts = this.#countsOf(owner);
    addCounts(counts, added);
    if (organization !== undefined) counts.organization = organization;
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
      counts.organization = added.organization ?? counts.organization;
    }
    this.#floor += other.floor;
    if (this.owners.size > 2 * this.#capacity) this.#prune();
  }

  #countsOf(owner: string): OwnerCounts {
    let counts = this.owners.get(owner);
    if (counts === undefined) {
      counts = this.#spare.pop() ?? { points: 0, requests: 0, refused: 0, error: 0, organization: undefined };
      counts.error = this.#floor;
      this.owners.set(owner, counts);
    }
    return counts;
  }

  /** Keeps `capacity` owners. Of those with equal weight, it keeps the ones that were counted first. */
  #prune(): void {
    const weights = new Float64Array(this.owners.size);
    let index = 0;
    for (const counts of this.owners.values()) weights[index++] = weightOf(counts);
    weights.sort();
    const first = weights.length - this.#capacity;
    const least = weights[first] ?? 0;
    // How many of the least weight stay: there may be more of them than places.
    let places = 0;
    for (let place = first; weights[place] === least; place++) places++;
    for (const [owner, counts] of this.owners) {
      const weight = weightOf(counts);
      if (weight > least || (weight === least && places-- > 0)) continue;
      this.#floor = Math.max(this.#floor, weight);
      this.owners.delete(owner);
      this.#recycle(counts);
    }
  }

  #recycle(counts: OwnerCounts): void {
    if (this.#spare.length >= MOST_SPARE) return;
    counts.points = 0;
    counts.requests = 0;
    counts.refused = 0;
    counts.organization = undefined;
    this.#spare.push(counts);
  }
}

/** At most this weight, `error` included. */
export function weightOf({ points, requests, refused, error }: OwnerCounts): number {
  return Math.max(points + refused, requests) + error;
}
