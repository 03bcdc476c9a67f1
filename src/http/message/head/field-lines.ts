import { GrammarError, isFieldValue, TOKEN_OCTETS } from '../grammar.ts';
import { FieldName } from './field-names.ts';

/** Field lines to be written, as text. */
export class FieldLines {
  /** Each line with its CRLF. */
  text: string;
  hasDate = false;
  hasLength = false;
  /** False if a field could end its line: nothing may be written then. */
  isSafe = true;
  /** Whether one of the fields that were added is for the upstream client to write. */
  hasClients = false;

  /** @param lines lines that were checked when they were read */
  constructor(lines = '') {
    this.text = lines;
  }

  /** @param fields name, value, name, value */
  static of(fields: readonly string[]): FieldLines {
    const lines = new FieldLines();
    lines.addAll(fields);
    return lines;
  }

  add(name: string, value: string): void {
    const { isToken, isClients, lower, lineStart } = fieldName(name);
    if (!isToken || !isFieldValue(value)) this.isSafe = false;
    if (isClients) {
      this.hasClients = true;
      if (lower === 'content-length') this.hasLength = true;
    }
    this.text += `${lineStart}${value}\r\n`;
  }

  /** Adds a field as `add` does, whose name is constant and not for the upstream client, and whose value was checked or made here. */
  addOwn(name: string, value: string): void {
    this.text += `${name}: ${value}\r\n`;
  }

  /** Notes whether a value could end its line. */
  check(value: string): void {
    if (!isFieldValue(value)) this.isSafe = false;
  }

  /**
   * Adds lines with constant names, and with values that were checked, or were made here. Every part that is joined
   * to a text takes 32 bytes of heap: several lines are best joined as one.
   */
  addLines(lines: string): void {
    this.text += lines;
  }

  /** @param fields name, value, name, value */
  addAll(fields: readonly string[]): void {
    for (let index = 0; index < fields.length; index += 2)
      this.add(fields[index] ?? '', fields[index + 1] ?? '');
  }

  /** Each name with its value. */
  get pairs(): [string, string][] {
    const lines = this.text.split('\r\n').slice(0, -1);
    return lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 2)];
    });
  }
}

/** A power of two, well above the number of names that the clients and services of one API use. */
const SLOT_COUNT = 1024;

/** Longer names are rare, and take too much memory. */
const MAX_LENGTH = 64;

const COLON = 0x3a;

/**
 * The names that were used before, by their hash. A name gets a slot when it is the slot's last miss as well as this one, so a stranger
 * who sends thousands of names once each takes no slot.
 */
const slots = new Array<{ readonly hash: number; readonly name: FieldName } | undefined>(SLOT_COUNT).fill(
  undefined,
);

/** The hash of the last name that was not found in each slot. */
const missed = new Int32Array(SLOT_COUNT);

/**
 * Reads a field's name, which ends at a colon. It is found by a hash that is made while its octets are checked, and then compared: no
 * string is made of a name that was seen before.
 *
 * @throws GrammarError
 */
export function readName(bytes: Buffer, from: number): FieldName {
  let at = from;
  let hash = 0;
  let octet = bytes[at] ?? 0;
  while (TOKEN_OCTETS[octet] === 1) {
    hash = (Math.imul(hash, 31) + octet) | 0;
    octet = bytes[++at] ?? 0;
  }
  if (at === from || octet !== COLON) throw new GrammarError('a line that is not a field');
  const slot = slots[hash & (SLOT_COUNT - 1)];
  if (slot?.hash === hash && isAt(bytes, from, at, slot.name.text)) return slot.name;
  return enter(hash, bytes.toString('latin1', from, at));
}

/** What follows from a name. */
export function fieldName(text: string): FieldName {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  const slot = slots[hash & (SLOT_COUNT - 1)];
  return slot?.hash === hash && slot.name.text === text ? slot.name : enter(hash, text);
}

function enter(hash: number, text: string): FieldName {
  const index = hash & (SLOT_COUNT - 1);
  const name = new FieldName(text);
  if (missed[index] !== hash) missed[index] = hash;
  else if (text.length <= MAX_LENGTH) slots[index] = { hash, name };
  return name;
}

function isAt(bytes: Buffer, from: number, to: number, text: string): boolean {
  if (text.length !== to - from) return false;
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) !== bytes[from + index]) return false;
  }
  return true;
}
