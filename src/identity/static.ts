import type { Identities } from '../config/files/identities.ts';
import type { Account, Principal } from '../domain/caller.ts';
import { digestOf, digestOfHex, presentedDigest } from '../domain/token-digest.ts';
import { Revocations, RevokedToken } from '../facts/revocations.ts';
import type { Client, Directory, IdentitySource } from './identity.ts';
import { type IdentityObserver, silentIdentityObserver } from './observer.ts';

/** Prefix of a token that the file specifies by its hex digest. */
const DIGEST = 'sha256:';

/** Tokens, principals and Accounts from the identities file. Of a token, only its SHA-256 digest is stored. */
export class StaticIdentities implements IdentitySource, Directory {
  readonly #observer: IdentityObserver;
  readonly #revocations: Revocations;
  #tokens = new TokenTable(0);
  #accounts: Identities['accounts'] = new Map();

  constructor(
    identities: Identities,
    observer: IdentityObserver = silentIdentityObserver,
    revocations = new Revocations(),
  ) {
    this.#observer = observer;
    this.#revocations = revocations;
    this.replace(identities);
  }

  /** Replaces the identities after a reload of the file. */
  replace({ tokens, accounts }: Identities): void {
    const table = new TokenTable(tokens.size);
    for (const [token, principal] of tokens) {
      const digest = token.startsWith(DIGEST) ? digestOfHex(token.slice(DIGEST.length)) : digestOf(token);
      table.add(digest, principal);
    }
    this.#tokens = table;
    this.#accounts = accounts;
  }

  principalOf(token: string, client?: Client): Principal | RevokedToken | 'unknown-token' {
    const found = this.#lookUp(presentedDigest(token, client?.lastDigest));
    const isKnown = typeof found === 'object' && !(found instanceof RevokedToken);
    this.#observer.identified('static', isKnown ? 'known' : 'invalid', true);
    return found;
  }

  find(account: string): Account | undefined {
    return this.#accounts.get(account);
  }

  /** A token that was revoked and then taken out of the file is a revoked one still. */
  #lookUp(digest: string): Principal | RevokedToken | 'unknown-token' {
    const principal = this.#tokens.find(digest);
    return this.#revocations.refuse([digest], principal?.id) ?? principal ?? 'unknown-token';
  }
}

const DIGEST_BYTES = 32;

/**
 * Principals by the digest of a token, in an open table. Few lines of memory are read for a token, and V8 has no object to move for it.
 * Digests are compared in constant time, so that response times do not reveal how much of a token matched.
 */
class TokenTable {
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

  find(digest: string): Principal | undefined {
    let place = slotOf(digest) & this.#mask;
    for (let number = this.#places[place]; number; number = this.#places[place]) {
      if (this.#isSame(number - 1, digest)) return this.#principals[number - 1];
      place = (place + 1) & this.#mask;
    }
    return undefined;
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
