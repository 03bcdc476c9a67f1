import { hash, timingSafeEqual } from 'node:crypto';
import type { Account, Identities } from '../config/identities.ts';
import type { Principal } from '../gateway/types.ts';
import type { Directory, IdentitySource } from './identity.ts';
import { type IdentityObserver, silentIdentityObserver } from './observer.ts';
import { Revocations } from './revocations.ts';

/** How the file marks a token that it gives as its digest, in lower-case hex. */
const DIGEST = 'sha256:';

interface Entry {
  readonly digest: Buffer;
  readonly principal: Principal;
}

/**
 * Tokens, principals and Accounts from the identities file. Tokens are kept as SHA-256 digests: found by the first 32
 * bits, then compared whole in constant time, so that no answer's time tells how much of a token was right.
 */
export class StaticIdentities implements IdentitySource, Directory {
  readonly #observer: IdentityObserver;
  readonly #revocations: Revocations;
  #entries = new Map<number, readonly Entry[]>();
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

  /** Puts another reading of the file in force. */
  replace({ tokens, accounts }: Identities): void {
    const entries = new Map<number, Entry[]>();
    for (const [token, principal] of tokens) {
      const digest = token.startsWith(DIGEST)
        ? Buffer.from(token.slice(DIGEST.length), 'hex')
        : hash('sha256', token, 'buffer');
      const slot = digest.readUInt32LE(0);
      entries.set(slot, [...(entries.get(slot) ?? []), { digest, principal }]);
    }
    this.#entries = entries;
    this.#accounts = accounts;
  }

  principalOf(token: string): Principal | undefined {
    const principal = this.#lookUp(hash('sha256', token, 'buffer'));
    this.#observer.identified('static', principal === undefined ? 'invalid' : 'known', true);
    return principal;
  }

  find(account: string): Account | undefined {
    return this.#accounts.get(account);
  }

  #lookUp(digest: Buffer): Principal | undefined {
    const entry = this.#entries
      .get(digest.readUInt32LE(0))
      ?.find((candidate) => timingSafeEqual(candidate.digest, digest));
    if (entry === undefined) return undefined;
    if (this.#revocations.isEmpty) return entry.principal;
    const isRevoked = this.#revocations.covers(digest.toString('binary'), entry.principal.id, undefined);
    return isRevoked ? undefined : entry.principal;
  }
}
