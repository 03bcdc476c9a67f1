import { GrammarError, TOKEN_OCTETS } from '../grammar.ts';
import { type FieldName, fieldName } from './field-names.ts';

/** A power of two, well above the number of names that the clients and services of one API use. */
const SLOT_COUNT = 1024;

/** Longer names are rare, and take too much memory. */
const MAX_LENGTH = 64;

const COLON = 0x3a;

interface Slot {
  readonly hash: number;
  readonly octets: Uint8Array;
  readonly name: FieldName;
}

/** Each slot has the last name that was found there. */
const slots = new Array<Slot | undefined>(SLOT_COUNT).fill(undefined);

/**
 * Reads a field's name, which ends at a colon. It is found by a hash that is made while its octets are checked, and then compared: no
 * string is made of a name that was seen before.
 *
 * @throws GrammarError
 */
export function readName(bytes: Uint8Array, from: number): FieldName {
  let at = from;
  let hash = 0;
  let octet = bytes[at] ?? 0;
  while (TOKEN_OCTETS[octet] === 1) {
    hash = (Math.imul(hash, 31) + octet) | 0;
    octet = bytes[++at] ?? 0;
  }
  if (at === from || octet !== COLON) throw new GrammarError('a line that is not a field');
  const index = hash & (SLOT_COUNT - 1);
  const slot = slots[index];
  if (slot?.hash === hash && isAt(bytes, from, at, slot.octets)) return slot.name;
  const octets = bytes.slice(from, at);
  const name = fieldName(Buffer.from(octets).toString('latin1'));
  if (octets.length <= MAX_LENGTH) slots[index] = { hash, octets, name };
  return name;
}

function isAt(bytes: Uint8Array, from: number, to: number, octets: Uint8Array): boolean {
  if (octets.length !== to - from) return false;
  for (let index = 0; index < octets.length; index++) {
    if (octets[index] !== bytes[from + index]) return false;
  }
  return true;
}
