/** Tokens are known by their SHA-256: none has to stay in memory. */
import { hash } from 'node:crypto';

/** SHA-256 as 32 bytes in a latin1 string: made in half the time of a Buffer, and a key of a Map as it is. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'binary');
}

/** The same form from 64 hex digits. */
export function digestOfHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1');
}

/** Compares two digests in a time that does not tell where they differ. */
export function isSameDigest(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let index = 0; index < one.length; index++)
    difference |= one.charCodeAt(index) ^ other.charCodeAt(index);
  return difference === 0;
}
