import { leadingBits } from '../domain/network.ts';

const WORD = 32;

/** The ranges of one family and length, by their leading bits. */
interface Length {
  readonly words: number;
  readonly bits: number;
  readonly byPrefix: Map<number | string, string>;
}

/**
 * Ranges of addresses such as `10.0.0.0/8`. A search takes one look for each length in use, at most 98, however many ranges there are.
 */
export class AddressRanges {
  readonly #lengths = new Map<string, Length>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param range as `rangeOf` returns it; a single address is ignored */
  add(range: string): void {
    const bits = Number(range.split('/')[1] ?? WORD);
    const prefix = leadingBits(range);
    if (bits >= WORD * prefix.length) return;
    const key = `${prefix.length} ${bits}`;
    const length = this.#lengths.get(key) ?? { words: prefix.length, bits, byPrefix: new Map() };
    this.#lengths.set(key, length);
    const masked = prefixOf(prefix, bits);
    if (!length.byPrefix.has(masked)) this.#size += 1;
    length.byPrefix.set(masked, range);
  }

  /** The ranges that contain an address, which is in the form of `networkOf`. */
  around(network: string): readonly string[] {
    if (this.#size === 0) return [];
    const words = leadingBits(network);
    const found: string[] = [];
    for (const length of this.#lengths.values()) {
      if (length.words !== words.length) continue;
      const range = length.byPrefix.get(prefixOf(words, length.bits));
      if (range !== undefined) found.push(range);
    }
    return found;
  }

  clear(): void {
    this.#lengths.clear();
    this.#size = 0;
  }
}

/** The leading bits as a key: a number if they are within the first word. */
function prefixOf([high = 0, low = 0]: readonly number[], bits: number): number | string {
  return bits <= WORD ? leading(high, bits) : `${high} ${leading(low, bits - WORD)}`;
}

function leading(word: number, bits: number): number {
  return Math.floor(word / 2 ** (WORD - bits));
}
