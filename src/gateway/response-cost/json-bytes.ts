import { pointsOfText } from '../../domain/settlement/settlement.ts';

/** The bytes of JSON texts that their readers look for. */
export const QUOTE = 0x22;
export const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

/** White space as RFC 8259 has it. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Where the first byte stands, from here on, that is no white space. */
export function behindSpaces(text: Buffer, from: number): number {
  let at = from;
  while (isSpace(text[at])) at++;
  return at;
}

/** Points, or why there are none. */
export type FoundPoints = number | 'missing' | 'invalid';

/** A longer number is cut off. */
const MOST_DIGITS = 400;

/** The points of the value that begins here, before a comma, a bracket or white space: at the end of the bytes, it may be cut off. */
export function pointsOfValue(bytes: Buffer, from: number): FoundPoints {
  const [text = ''] = /^[^\s,}\]]*/.exec(bytes.toString('latin1', from, from + MOST_DIGITS)) ?? [];
  if (text === 'null' || from + text.length === bytes.length) return 'missing';
  return pointsOfText(text) ?? 'invalid';
}
