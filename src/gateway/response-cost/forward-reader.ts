import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import { behindSpaces, COLON, type FoundPoints, OPEN_OBJECT, pointsOfValue, QUOTE } from './json-bytes.ts';
import type { KeyScan } from './key-scan.ts';

const NOWHERE = -1;

/** What follows the bytes. Of several texts, the last one is unknown if the rest is not read. */
export type Rest = 'nothing' | 'unread' | 'unsent';

/**
 * The points of a member in the last JSON text of some bytes, which are read once, from their beginning. Of members with one name the last
 * counts. A text that is no JSON has no member, or one that is found all the same.
 *
 * @returns undefined if this machine, a name of the pointer, or the length of the text does not allow it
 */
export function pointsForwards(
  text: Buffer,
  { keys, isPlain }: JsonPointer,
  scan: KeyScan | 'impossible',
  rest: Rest = 'nothing',
): FoundPoints | undefined {
  if (!isPlain || scan === 'impossible' || !scan.begin(text, keys)) return undefined;
  return new ForwardReader(text, keys, scan, rest).read();
}

class ForwardReader {
  readonly #text: Buffer;
  readonly #keys: readonly Buffer[];
  readonly #scan: KeyScan;
  readonly #rest: Rest;
  /** How many names of the pointer lead to the object that is read. */
  #level = 0;
  /** Where the value of the member begins. */
  #valueAt = NOWHERE;
  #isInString = false;

  constructor(text: Buffer, keys: readonly Buffer[], scan: KeyScan, rest: Rest) {
    this.#text = text;
    this.#keys = keys;
    this.#scan = scan;
    this.#rest = rest;
  }

  read(): FoundPoints {
    const text = this.#text;
    let at = this.#textFrom(0);
    while (at < text.length) {
      const next = this.#scan.next(at, this.#isInString, this.#level);
      this.#isInString = false;
      if (next === NOWHERE) return this.#rest === 'nothing' ? 'missing' : this.#points();
      at = text[next] === QUOTE ? this.#readName(next) : this.#endObject(next + 1);
    }
    return this.#rest === 'unread' ? 'missing' : this.#points();
  }

  #points(): FoundPoints {
    return this.#valueAt === NOWHERE ? 'missing' : pointsOfValue(this.#text, this.#valueAt);
  }

  /** Begins a text, unless all texts have ended. @returns where to go on */
  #textFrom(from: number): number {
    const at = behindSpaces(this.#text, from);
    if (at < this.#text.length) this.#valueAt = NOWHERE;
    // Only an object has members.
    return this.#text[at] === OPEN_OBJECT ? at + 1 : this.#text.length;
  }

  #endObject(end: number): number {
    if (this.#level === 0) return this.#rest === 'unread' ? this.#text.length : this.#textFrom(end);
    this.#level--;
    return end;
  }

  #readName(quoteAt: number): number {
    const value = this.#valueBehind(quoteAt);
    this.#isInString = value === NOWHERE;
    if (this.#isInString) return quoteAt + 1;
    const isInnermost = this.#level === this.#keys.length - 1;
    this.#valueAt = isInnermost ? value : NOWHERE;
    if (isInnermost || this.#text[value] !== OPEN_OBJECT) return value;
    this.#level++;
    return value + 1;
  }

  /** Where the value begins, if the string is the name of a member. */
  #valueBehind(quoteAt: number): number {
    const text = this.#text;
    const key = this.#keys[this.#level];
    if (key === undefined) return NOWHERE;
    const end = quoteAt + 1 + key.length;
    if (text[end] !== QUOTE || text.compare(key, 0, key.length, quoteAt + 1, end) !== 0) return NOWHERE;
    const colonAt = behindSpaces(text, end + 1);
    return text[colonAt] === COLON ? behindSpaces(text, colonAt + 1) : NOWHERE;
  }
}
