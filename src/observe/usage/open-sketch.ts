import type { Counts } from './counts.ts';
import { emptied, type OwnerCounts, Room, type Sketched, weightOf } from './sketch.ts';

/** What an owner came to in an open sketch. */
export interface OpenCounts extends OwnerCounts {
  id: string;
  /** Undefined if no more is added. */
  owner: CountedOwner | undefined;
}

/** An owner that keeps its counts at hand. While a sketch adds to them, there is no other owner with its id. */
export interface CountedOwner {
  readonly id: string;
  counts: OpenCounts | undefined;
}

/** A sketch that is being filled, without looking owners up. It has the bounds of any other sketch. */
export class OpenSketch implements Sketched {
  readonly #capacity: number;
  /** In the order in which the owners were first counted. */
  readonly #held: OpenCounts[] = [];
  readonly #spare: OpenCounts[] = [];
  #floor = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get floor(): number {
    return this.#floor;
  }

  get owners(): readonly (readonly [string, OwnerCounts])[] {
    return this.#held.map((counts) => [counts.id, counts]);
  }

  /** @param organization of an Account that has one */
  add(owner: CountedOwner, added: Counts, organization?: string): void {
    const known = owner.counts;
    const counts = known?.owner === owner ? known : this.#begin(owner);
    // Not by `addCounts`, which is called with so many kinds of objects that it takes V8 longer.
    counts.points += added.points;
    counts.requests += added.requests;
    counts.refused += added.refused;
    if (organization !== undefined) counts.organization = organization;
    if (this.#held.length >= 2 * this.#capacity) this.#prune();
  }

  /** To be called after the last `add`: the owners are no longer in use. */
  close(): void {
    for (const counts of this.#held) counts.owner = undefined;
    this.#spare.length = 0;
  }

  #begin(owner: CountedOwner): OpenCounts {
    const { id } = owner;
    const counts = this.#spare.pop() ?? {
      id,
      owner,
      points: 0,
      requests: 0,
      refused: 0,
      error: 0,
      organization: undefined,
    };
    counts.id = id;
    counts.owner = owner;
    counts.error = this.#floor;
    owner.counts = counts;
    this.#held.push(counts);
    return counts;
  }

  #prune(): void {
    const room = new Room(this.#held, this.#held.length, this.#capacity);
    let kept = 0;
    for (const counts of this.#held) {
      const weight = weightOf(counts);
      if (room.takes(weight)) {
        this.#held[kept++] = counts;
        continue;
      }
      this.#floor = Math.max(this.#floor, weight);
      counts.owner = undefined;
      this.#spare.push(emptied(counts));
    }
    this.#held.length = kept;
  }
}
