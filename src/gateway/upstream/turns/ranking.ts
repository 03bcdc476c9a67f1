/** One entry of a chain; it is in one chain at most. */
export class Link<T> {
  readonly value: T;
  previous: Link<T> | undefined = undefined;
  next: Link<T> | undefined = undefined;

  constructor(value: T) {
    this.value = value;
  }
}

/** A list in order of arrival, from which any entry can be removed in constant time. */
export class Chain<T> {
  first: Link<T> | undefined = undefined;
  last: Link<T> | undefined = undefined;

  push(link: Link<T>): void {
    link.previous = this.last;
    if (this.last === undefined) this.first = link;
    else this.last.next = link;
    this.last = link;
  }

  /** @param link an entry of this chain */
  remove(link: Link<T>): void {
    const { previous, next } = link;
    if (previous === undefined) this.first = next;
    else previous.next = next;
    if (next === undefined) this.last = previous;
    else next.previous = previous;
    link.previous = undefined;
    link.next = undefined;
  }
}

/** An entry of a ranking. */
export class Ranked<T> extends Link<T> {
  /** Undefined while it is in no ranking. */
  rank: number | undefined = undefined;
  /** When it got its rank, by a count of all such events. */
  order = 0;
}

const BITS = 32;

let orders = 0;

/**
 * Entries by a small whole number. Every operation takes constant time for ranks below 1,024, however many entries there are, and one
 * step more for each further 1,024.
 */
export class Ranking<T> {
  readonly #ranks: Chain<T>[] = [];
  /** A bit for each rank that has entries. */
  readonly #words: number[] = [];
  /** A bit for each word that is not zero. */
  readonly #summary: number[] = [];

  /** Adds an entry, or moves it to another rank, behind those that are there. */
  put(entry: Ranked<T>, rank: number): void {
    if (entry.rank === rank) return;
    this.remove(entry);
    entry.rank = rank;
    entry.order = ++orders;
    while (this.#ranks.length <= rank) this.#grow();
    this.#ranks[rank]?.push(entry);
    this.#mark(rank, true);
  }

  remove(entry: Ranked<T>): void {
    const { rank } = entry;
    if (rank === undefined) return;
    entry.rank = undefined;
    const chain = this.#ranks[rank];
    chain?.remove(entry);
    if (chain?.first === undefined) this.#mark(rank, false);
  }

  /** The first entry of the lowest rank that has any. */
  get lowest(): Ranked<T> | undefined {
    for (const [index, bits] of this.#summary.entries()) {
      if (bits !== 0) return this.#entryOf(index * BITS + lowestBit(bits), lowestBit);
    }
    return undefined;
  }

  /** The first entry of the highest rank that has any. */
  get highest(): Ranked<T> | undefined {
    for (let index = this.#summary.length - 1; index >= 0; index--) {
      const bits = this.#summary[index] ?? 0;
      if (bits !== 0) return this.#entryOf(index * BITS + highestBit(bits), highestBit);
    }
    return undefined;
  }

  #entryOf(word: number, bitOf: (bits: number) => number): Ranked<T> | undefined {
    return this.#ranks[word * BITS + bitOf(this.#words[word] ?? 0)]?.first as Ranked<T> | undefined;
  }

  #grow(): void {
    const rank = this.#ranks.push(new Chain()) - 1;
    if (rank % BITS === 0) this.#words.push(0);
    if (rank % (BITS * BITS) === 0) this.#summary.push(0);
  }

  #mark(rank: number, isUsed: boolean): void {
    const word = Math.floor(rank / BITS);
    setBit(this.#words, rank, isUsed);
    setBit(this.#summary, word, this.#words[word] !== 0);
  }
}

function setBit(words: number[], position: number, isSet: boolean): void {
  const index = Math.floor(position / BITS);
  const bit = 1 << (position % BITS);
  const word = words[index] ?? 0;
  words[index] = isSet ? word | bit : word & ~bit;
}

function lowestBit(bits: number): number {
  return BITS - 1 - Math.clz32(bits & -bits);
}

function highestBit(bits: number): number {
  return BITS - 1 - Math.clz32(bits);
}
