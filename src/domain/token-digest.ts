/** SHA-256 digests of tokens, so that no token has to stay in memory. */
import { hash } from 'node:crypto';
import type { Principal } from './caller.ts';

/** The SHA-256 of a token as a latin1 string of 32 characters. Twice as fast as a Buffer, and usable as a Map key. */
export function digestOf(token: string): string {
  return hash('sha256', token, 'binary');
}

/** Longer tokens are not remembered. */
const MAX_LENGTH = 2_048;

/** A connection with more tokens than this has many callers: nothing of it is remembered any more. */
const MAX_TOKENS = 4;

/**
 * The last token of one connection and its digest, which costs 1.3 µs to make. Whatever depends on the digest is looked up for each
 * request: what the token is good for, whether it has expired, and whether it was revoked.
 */
export class LastDigest {
  #token = '';
  #digest = '';
  #tokenCount = 0;

  of(token: string): string {
    if (token === this.#token && token !== '') return this.#digest;
    const digest = digestOf(token);
    if (token.length > MAX_LENGTH || this.#tokenCount > MAX_TOKENS) return digest;
    this.#tokenCount++;
    // A copy: the token that was given may be a part of a whole head, and would keep it in memory.
    const copy = this.#tokenCount > MAX_TOKENS ? '' : Buffer.from(token).toString();
    // A token with half a surrogate pair has no copy.
    this.#token = copy === token ? copy : '';
    this.#digest = digest;
    return digest;
  }
}

/** The digest of a token that a client presents. */
export function presentedDigest(token: string, lastDigest: LastDigest | undefined): string {
  return lastDigest === undefined ? digestOf(token) : lastDigest.of(token);
}

/** Converts 64 hex digits to the same form. */
export function digestOfHex(hex: string): string {
  return Buffer.from(hex, 'hex').toString('latin1');
}

const DIGEST_BYTES = 32;

/**
 * Principals by the digest of a token, in an open table. Few lines of memory are read for a token, and V8 has no object to move for it.
 * Digests are compared in constant time, so that response times do not reveal how much of a token matched.
 */
export class TokenTable {
  readonly #mask: number;
  /** The number of the digest at each place, counted from 1; 0 for none. At most half of the places are taken. */
  readonly #places: Uint32Array;
  readonly #digests: Uint8Array;
  readonly #principals: Principal[] = [];

  /** @param most tokens that are added */
  constructor(most: number) {
    const places = 2 ** Math.ceil(Math.log2(2 * most + 2));
    this.#mask = places - 1;
    this.#places = new Uint32Array(places);
    this.#digests = new Uint8Array(most * DIGEST_BYTES);
  }

  get size(): number {
    return this.#principals.length;
  }

  /** Of two principals with the same digest, the first is found. */
  add(digest: string, principal: Principal): void {
    let place = slotOf(digest) & this.#mask;
    while (this.#places[place] !== 0) place = (place + 1) & this.#mask;
    const start = this.#principals.length * DIGEST_BYTES;
    for (let index = 0; index < DIGEST_BYTES; index++)
      this.#digests[start + index] = digest.charCodeAt(index);
    this.#principals.push(principal);
    this.#places[place] = this.#principals.length;
  }

  get(digest: string): Principal | undefined {
    let place = slotOf(digest) & this.#mask;
    for (let number = this.#places[place]; number; number = this.#places[place]) {
      if (this.#isSame(number - 1, digest)) return this.#principals[number - 1];
      place = (place + 1) & this.#mask;
    }
    return undefined;
  }

  /** The digests, in the order in which they were added, and their principals. */
  *[Symbol.iterator](): Generator<readonly [digest: string, principal: Principal]> {
    for (const [number, principal] of this.#principals.entries()) {
      const bytes = this.#digests.subarray(number * DIGEST_BYTES, (number + 1) * DIGEST_BYTES);
      yield [Buffer.from(bytes).toString('latin1'), principal];
    }
  }

  #isSame(number: number, digest: string): boolean {
    const start = number * DIGEST_BYTES;
    let difference = 0;
    for (let index = 0; index < DIGEST_BYTES; index++)
      difference |= (this.#digests[start + index] ?? 0) ^ digest.charCodeAt(index);
    return difference === 0;
  }
}

/** The first 32 bits of a digest. */
function slotOf(digest: string): number {
  let slot = 0;
  for (let index = 0; index < 4; index++) slot = (slot << 8) | digest.charCodeAt(index);
  return slot;
}
