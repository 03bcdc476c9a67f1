import { addCounts, type Counts, type Sum } from './counts.ts';

/** What one owner's requests came to, as far as a sketch has counted them. */
export interface OwnerCounts extends Sum {
  /** Points, refusals or requests that may have gone uncounted before the owner was first, or again, in the sketch. */
  error: number;
  /** Of an Account that was counted with one. */
  organization: string | undefined;
}

/** What a sketch has counted. */
export interface Sketched {
  readonly owners: Iterable<readonly [string, OwnerCounts]>;
  readonly floor: number;
}

/**
 * Dropped counts that a sketch keeps, to use them again. New ones would live long enough to be moved to V8's old generation, whose
 * collections take longer.
 */
const MOST_SPARE = 1_000;

/**
 * The owners with the most points, refusals and requests, in bounded memory (the frequent-items sketch of Misra and Gries, pruned
 * in batches). At most twice `capacity` owners are held; then those with the least weight are dropped. The weight is the points plus
 * the refusals, or the requests where these are more, as they are while the store counts no points. The true weight of an owner is at
 * least what is counted, and at most that plus `error`; the weight of an owner that is not held is at most `floor`. Up to `capacity`
 * owners, all of it is exact.
 */
export class Sketch implements Sketched {
  readonly owners = new Map<string, OwnerCounts>();
  readonly #capacity: number;
  readonly #spare: OwnerCounts[] = [];
  #floor = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get floor(): number {
    return this.#floor;
  }

  add(owner: string, added: Counts): void {
    addCounts(this.#countsOf(owner), added);
    if (this.owners.size >= 2 * this.#capacity) this.#prune();
  }

  /** Adds all that another sketch has counted. */
  merge({ owners, floor }: Sketched): void {
    // The other one has dropped at most this of an owner that it does not hold.
    if (floor > 0) for (const counts of this.owners.values()) counts.error += floor;
    for (const [owner, added] of owners) {
      const known = this.owners.get(owner);
      if (known !== undefined) known.error -= floor;
      const counts = known ?? this.#countsOf(owner);
      addCounts(counts, added);
      counts.error += added.error;
      counts.organization = added.organization ?? counts.organization;
    }
    this.#floor += floor;
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

  #prune(): void {
    const room = new Room(this.owners.values(), this.owners.size, this.#capacity);
    for (const [owner, counts] of this.owners) {
      const weight = weightOf(counts);
      if (room.takes(weight)) continue;
      this.#floor = Math.max(this.#floor, weight);
      this.owners.delete(owner);
      if (this.#spare.length < MOST_SPARE) this.#spare.push(emptied(counts));
    }
  }
}

/** At most this weight, `error` included. */
export function weightOf({ points, requests, refused, error }: OwnerCounts): number {
  return Math.max(points + refused, requests) + error;
}

/** Counts that are used again. */
export function emptied<T extends OwnerCounts>(counts: T): T {
  counts.points = 0;
  counts.requests = 0;
  counts.refused = 0;
  counts.organization = undefined;
  return counts;
}

/** Room for the owners with the most weight. Of those with equal weight, it takes the ones that come first. */
export class Room {
  /** The least weight that it takes. */
  readonly #least: number;
  /** For those with the least weight. */
  #places: number;

  /** @param capacity fewer than there are counts */
  constructor(all: Iterable<OwnerCounts>, count: number, capacity: number) {
    const weights = new Float64Array(count);
    let index = 0;
    for (const counts of all) weights[index++] = weightOf(counts);
    let [from, to, places] = [0, count, capacity];
    // Sorting all of them would take four times as long.
    for (;;) {
      const pivot = weights[(from + to) >>> 1] ?? 0;
      const [heavier, lighter] = partition(weights, from, to, pivot);
      if (places <= heavier - from) to = heavier;
      else if (places > lighter - from) {
        places -= lighter - from;
        from = lighter;
      } else {
        this.#least = pivot;
        this.#places = places - (heavier - from);
        return;
      }
    }
  }

  takes(weight: number): boolean {
    return weight > this.#least || (weight === this.#least && this.#places-- > 0);
  }
}

/** Moves what is more than the pivot to the front, and what is less to the end. @returns the ends of the front and of the middle */
function partition(weights: Float64Array, from: number, to: number, pivot: number): [number, number] {
  let [front, next, end] = [from, from, to];
  while (next < end) {
    const weight = weights[next] ?? 0;
    if (weight > pivot) {
      weights[next++] = weights[front] ?? 0;
      weights[front++] = weight;
    } else if (weight < pivot) {
      weights[next] = weights[--end] ?? 0;
      weights[end] = weight;
    } else next += 1;
  }
  return [front, end];
}
