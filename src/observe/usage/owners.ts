import { randomInt } from 'node:crypto';
import type { Operation } from '../../stages/request-context.ts';
import type { OwnerActivity } from './activity.ts';
import type { SpendingSum, UsageSum } from './batch.ts';
import type { CountedOwner, OpenCounts } from './open-sketch.ts';

/** Owners of a generation. The last two are kept. An owner that is always active takes about 6 KB. */
const OWNERS_PER_GENERATION = 2_500;

const FEWEST_PLACES = 64;

/** No stranger knows it, so nobody can choose ids that share a place. */
const SEED = randomInt(2 ** 32);

/** An Account, Organization, Person or address, with all that is counted of it, so that a request looks it up once. */
export class Owner implements CountedOwner {
  readonly id: string;
  readonly hash: number;
  /** The last generation in which it had a request. */
  generation = 0;
  /** Sums that were not passed on yet. */
  #waiting = 0;
  /** The one of them that was added to last. */
  #sum: SpendingSum | undefined = undefined;
  /** All of the same batch, once there are several. */
  #sums: Map<Operation, SpendingSum> | undefined = undefined;
  /** What it did lately. An owner with a single sum is that sum. */
  activity: UsageSum | OwnerActivity | undefined = undefined;
  /** Its counts among the top talkers, if they have it as their owner. */
  counts: OpenCounts | undefined = undefined;

  constructor(id: string, hash: number) {
    this.id = id;
    this.hash = hash;
  }

  /** Whether it is being added to, so that there must be no second one of its id. */
  get isInUse(): boolean {
    return this.#waiting > 0 || this.counts?.owner === this;
  }

  begin(sum: SpendingSum): void {
    const other = this.#sum?.batch === sum.batch ? this.#sum : undefined;
    if (other === undefined) this.#sums = undefined;
    else {
      this.#sums ??= new Map([[other.operation, other]]);
      this.#sums.set(sum.operation, sum);
    }
    this.#sum = sum;
    this.#waiting += 1;
  }

  /** The newest sum of this batch for an operation. */
  sumIn(batch: number, operation: Operation): SpendingSum | undefined {
    const sum = this.#sum;
    if (sum?.batch !== batch) return undefined;
    return sum.operation === operation ? sum : this.#sums?.get(operation);
  }

  /** One of its sums was passed on. */
  passedOn(): void {
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    this.#sum = undefined;
    this.#sums = undefined;
  }
}

/**
 * The owners of one scope that had a request last, in two generations, in an open table. With a Map for each generation, an owner that is in
 * neither would take three times as long.
 */
export class Owners {
  readonly #owners: Owner[] = [];
  /** At each place 16 bits of a hash, and the number of its owner, counted from 1; 0 for none. At most half of the places are taken. */
  #places = new Uint32Array(FEWEST_PLACES);
  #generation = 1;
  /** Owners of this generation. */
  #young = 0;

  get(id: string): Owner | undefined {
    return this.#find(id, hashOf(id));
  }

  /** The owner, which becomes the newest. It is made if needed. */
  renew(id: string): Owner {
    const hash = hashOf(id);
    const owner = this.#find(id, hash) ?? this.#add(id, hash);
    if (owner.generation === this.#generation) return owner;
    owner.generation = this.#generation;
    this.#young += 1;
    if (this.#young >= OWNERS_PER_GENERATION) this.#turn();
    return owner;
  }

  #find(id: string, hash: number): Owner | undefined {
    const places = this.#places;
    let place = hash & (places.length - 1);
    for (let entry = places[place]; entry; entry = places[place]) {
      if (entry >>> 16 === hash >>> 16) {
        const owner = this.#owners[(entry & 0xffff) - 1];
        if (owner?.id === id) return owner;
      }
      place = (place + 1) & (places.length - 1);
    }
    return undefined;
  }

  #add(id: string, hash: number): Owner {
    const owner = new Owner(id, hash);
    this.#owners.push(owner);
    if (2 * this.#owners.length > this.#places.length) this.#placeAll();
    else this.#place(hash, this.#owners.length);
    return owner;
  }

  #place(hash: number, number: number): void {
    const places = this.#places;
    let place = hash & (places.length - 1);
    while (places[place] !== 0) place = (place + 1) & (places.length - 1);
    places[place] = (hash & 0xffff0000) | number;
  }

  #placeAll(): void {
    let length = FEWEST_PLACES;
    while (length < 2 * this.#owners.length) length *= 2;
    this.#places = new Uint32Array(length);
    for (let index = 0; index < this.#owners.length; index++)
      this.#place(this.#owners[index]?.hash ?? 0, index + 1);
  }

  /**
   * Ends a generation, and drops the owners that had no request in it. The table keeps its size, which the next generation needs, and each
   * owner is placed in the same pass, while it is in the processor's cache.
   */
  #turn(): void {
    let kept = 0;
    this.#places.fill(0);
    for (const owner of this.#owners) {
      if (owner.generation !== this.#generation) {
        // Sums of its Organization may still refer to it.
        owner.activity = undefined;
        if (!owner.isInUse) continue;
      }
      this.#owners[kept++] = owner;
      this.#place(owner.hash, kept);
    }
    this.#owners.length = kept;
    this.#generation += 1;
    this.#young = 0;
  }
}

/** FNV-1a. */
function hashOf(id: string): number {
  let hash = SEED;
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193);
  return hash ^ (hash >>> 15);
}
