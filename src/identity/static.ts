import type { Identities } from '../config/files/identities.ts';
import type { Account, Principal } from '../domain/caller.ts';
import { digestOf, digestOfHex, isSameDigest, presentedDigest } from '../domain/token-digest.ts';
import { Revocations, RevokedToken } from '../facts/revocations.ts';
import type { Client, Directory, IdentitySource } from './identity.ts';
import { type IdentityObserver, silentIdentityObserver } from './observer.ts';

/** Prefix of a token that the file specifies by its hex digest. */
const DIGEST = 'sha256:';

interface KnownToken {
  readonly digest: string;
  readonly principal: Principal;
}

/**
 * Tokens, principals and Accounts from the identities file. Tokens are stored as SHA-256 digests, indexed by their first 32
 * bits and compared in constant time, so that response times do not reveal how much of a token matched.
 */
export class StaticIdentities implements IdentitySource, Directory {
  readonly #observer: IdentityObserver;
  readonly #revocations: Revocations;
  #entries = new Map<number, readonly KnownToken[]>();
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
    const entries = new Map<number, KnownToken[]>();
    for (const [token, principal] of tokens) {
      const digest = token.startsWith(DIGEST) ? digestOfHex(token.slice(DIGEST.length)) : digestOf(token);
      const slot = slotOf(digest);
      entries.set(slot, [...(entries.get(slot) ?? []), { digest, principal }]);
    }
    this.#entries = entries;
    this.#accounts = accounts;
  }

  principalOf(token: string, client?: Client): Principal | RevokedToken | undefined {
    const found = this.#lookUp(presentedDigest(token, client?.lastDigest));
    const isKnown = found !== undefined && !(found instanceof RevokedToken);
    this.#observer.identified('static', isKnown ? 'known' : 'invalid', true);
    return found;
  }

  find(account: string): Account | undefined {
    return this.#accounts.get(account);
  }

  /** A token that was revoked and then taken out of the file is a revoked one still. */
  #lookUp(digest: string): Principal | RevokedToken | undefined {
    for (const { digest: known, principal } of this.#entries.get(slotOf(digest)) ?? []) {
      if (isSameDigest(known, digest)) return this.#revocations.refuse([digest], principal.id) ?? principal;
    }
    return this.#revocations.refuse([digest]);
  }
}

/** The first 32 bits of a digest. */
function slotOf(digest: string): number {
  let slot = 0;
  for (let index = 0; index < 4; index++) slot = (slot << 8) | digest.charCodeAt(index);
  return slot;
}
