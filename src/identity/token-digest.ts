/** SHA-256 digests of tokens, so that no token has to stay in memory. */
import { hash } from 'node:crypto';

/** The SHA-256 of a token as a latin1 string of 32 characters. Twice as fast as a Buffer, and usable as a Map key. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'binary');
}

/** Converts 64 hex digits to the same form. */
export function digestOfHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1');
}

/** Compares two digests in constant time. */
export function isSameDigest(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let index = 0; index < one.length; index++)
    difference |= one.charCodeAt(index) ^ other.charCodeAt(index);
  return difference === 0;
}
