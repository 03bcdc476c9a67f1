import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import { pointsOf } from '../../domain/settlement/settlement.ts';
import { pointsForwards } from './forward-reader.ts';
import {
  BACKSLASH,
  behindSpaces,
  CLOSE_OBJECT,
  COLON,
  type FoundPoints,
  isSpace,
  OPEN_OBJECT,
  pointsOfValue,
  QUOTE,
} from './json-bytes.ts';
import { keyScan } from './key-scan.ts';

const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;

/** Most costs stand at the end of a text. */
const NEAR_END = 1_024;

/**
 * The points of a member in a JSON text, or in the last of several that follow each other. Of members with one name the last counts, as for `JSON.parse`.
 *
 * @param scan where it is impossible, a member that is not near the end takes ten times as long
 */
export function pointsIn(text: Buffer, pointer: JsonPointer, scan = keyScan()): FoundPoints {
  if (pointer.hasIndex) return pointsInParsed(lastText(text).toString(), pointer);
  const read = (bytes: Buffer) => new BackwardReader(bytes, pointer.keys).read();
  return read(text.subarray(-NEAR_END)) ?? pointsForwards(text, pointer, scan) ?? read(text) ?? 'missing';
}

/** The same for a short text. */
export function pointsInParsed(text: string, pointer: JsonPointer): FoundPoints {
  let value: unknown;
  try {
    value = pointer.valueIn(JSON.parse(text));
  } catch {
    return 'missing';
  }
  return value === undefined || value === null ? 'missing' : (pointsOf(value) ?? 'invalid');
}

/** The bytes that structure a text outside of its strings. */
const IS_STRUCTURE = new Uint8Array(256);
for (const byte of [QUOTE, COMMA, COLON, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT])
  IS_STRUCTURE[byte] = 1;

/**
 * Reads the last JSON text of some bytes from its end, because an API states what a request has cost behind what was asked for. It stops
 * at the outermost member, so what stands before that is not even looked at. It takes linear time, whatever the bytes are: a
 * text that is no JSON has no member, or one that is found all the same.
 */
class BackwardReader {
  readonly #bytes: Buffer;
  readonly #keys: readonly Buffer[];
  /** By depth: what the member of the open object came to. */
  readonly #results: (FoundPoints | undefined)[] = [];
  #depth = 0;
  /** What the array or object came to whose beginning was read last; undefined if the value is a scalar. */
  #closed: FoundPoints | undefined;

  constructor(bytes: Buffer, keys: readonly Buffer[]) {
    this.#bytes = bytes;
    this.#keys = keys;
  }

  /** @returns undefined if the member was not found, and the text begins before these bytes */
  read(): FoundPoints | undefined {
    const bytes = this.#bytes;
    let at = spacesBefore(bytes, bytes.length - 1);
    if (at >= 0 && bytes[at] !== CLOSE_OBJECT) return 'missing';
    while (at >= 0) {
      at = this.#readStructure(at);
      if (this.#results[1] !== undefined) return this.#results[1];
      if (this.#depth === 0) return 'missing';
      at = this.#depth > this.#keys.length ? this.#skipDeeper(at) : structureBefore(bytes, at);
    }
    return undefined;
  }

  /** @returns where to go on */
  #readStructure(at: number): number {
    const byte = this.#bytes[at];
    if (byte === QUOTE) return stringStart(this.#bytes, at) - 1;
    if (byte === COLON) return this.#readKey(at) - 1;
    if (isOpening(byte)) {
      this.#closed = this.#results[this.#depth] ?? 'missing';
      this.#depth--;
      return at - 1;
    }
    if (isClosing(byte)) {
      this.#depth++;
      this.#results[this.#depth] = undefined;
    }
    this.#closed = undefined;
    return at - 1;
  }

  /** Passes over what is too deep to matter. @returns where it begins, at its bracket; -1 if it does not begin */
  #skipDeeper(from: number): number {
    const at = openingBefore(this.#bytes, from, this.#depth - this.#keys.length);
    this.#depth = this.#keys.length + 1;
    return at;
  }

  /** @returns where the key begins */
  #readKey(colonAt: number): number {
    const bytes = this.#bytes;
    const end = spacesBefore(bytes, colonAt - 1);
    if (bytes[end] !== QUOTE) return colonAt;
    const start = stringStart(bytes, end);
    const depth = this.#depth;
    const key = this.#keys[depth - 1];
    if (start === -1) return start;
    if (key !== undefined && this.#results[depth] === undefined && isKey(bytes, start + 1, end, key))
      this.#results[depth] = this.#valueBehind(colonAt);
    return start;
  }

  #valueBehind(colonAt: number): FoundPoints {
    if (this.#depth < this.#keys.length) return this.#closed ?? 'missing';
    return pointsOfValue(this.#bytes, behindSpaces(this.#bytes, colonAt + 1));
  }
}

/**
 * The last object or array of some bytes, which is found from its end in linear time. Empty if the last text is neither, or is part of
 * another one that is not whole.
 */
function lastText(bytes: Buffer): Buffer {
  const end = spacesBefore(bytes, bytes.length - 1);
  if (!isClosing(bytes[end])) return NOTHING;
  const start = openingBefore(bytes, end - 1, 1);
  const before = bytes[spacesBefore(bytes, start - 1)];
  const isPart = before === COMMA || before === COLON || isOpening(before);
  return start === -1 || isPart ? NOTHING : bytes.subarray(start, end + 1);
}

const NOTHING = Buffer.alloc(0);

/** Where the bracket is, from here backwards, that opens the outermost of so many values that end behind it; -1 if there is none. */
function openingBefore(bytes: Buffer, from: number, count: number): number {
  let depth = count;
  let at = structureBefore(bytes, from);
  for (; at >= 0; at = structureBefore(bytes, at - 1)) {
    const byte = bytes[at];
    if (byte === QUOTE) at = stringStart(bytes, at);
    else if (isClosing(byte)) depth++;
    else if (isOpening(byte) && --depth === 0) return at;
  }
  return -1;
}

function isOpening(byte: number | undefined): boolean {
  return byte === OPEN_OBJECT || byte === OPEN_ARRAY;
}

function isClosing(byte: number | undefined): boolean {
  return byte === CLOSE_OBJECT || byte === CLOSE_ARRAY;
}

/** Where the last byte is, from here backwards, that structures the text; -1 if there is none. */
function structureBefore(bytes: Buffer, from: number): number {
  let at = from;
  while (at >= 0 && IS_STRUCTURE[bytes[at] ?? 0] === 0) at--;
  return at;
}

/** Where the last byte is, from here backwards, that is no white space; -1 if there is none. */
function spacesBefore(bytes: Buffer, from: number): number {
  let at = from;
  while (at >= 0 && isSpace(bytes[at])) at--;
  return at;
}

/** Where the string begins whose closing quotation mark stands here; -1 if it does not begin. */
function stringStart(bytes: Buffer, closingAt: number): number {
  let at = closingAt - 1;
  while (at >= 0) {
    at = quoteBefore(bytes, at);
    let before = at - 1;
    while (before >= 0 && bytes[before] === BACKSLASH) before--;
    if (before < 0) return -1;
    if ((at - before) % 2 === 1) return at;
    at = before;
  }
  return -1;
}

/** A call of `lastIndexOf` takes longer than looking at so many bytes. */
const NEAR = 48;

function quoteBefore(bytes: Buffer, from: number): number {
  const near = Math.max(0, from - NEAR);
  for (let at = from; at >= near; at--) if (bytes[at] === QUOTE) return at;
  return near === 0 ? -1 : bytes.lastIndexOf(QUOTE, near - 1);
}

function isKey(bytes: Buffer, from: number, to: number, key: Buffer): boolean {
  if (to - from === key.length) return bytes.compare(key, 0, key.length, from, to) === 0;
  // At most six characters for each byte.
  if (to - from < key.length || to - from > 6 * key.length) return false;
  const text = bytes.toString('utf8', from, to);
  if (!text.includes('\\')) return false;
  try {
    return JSON.parse(`"${text}"`) === key.toString();
  } catch {
    return false;
  }
}
