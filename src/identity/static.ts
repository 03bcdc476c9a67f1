import type { Identities } from '../config/files/identities/parse-identities.ts';
import type { Account, Principal } from '../domain/caller.ts';
import { presentedDigest, TokenTable } from '../domain/token-digest.ts';
import { Revocations, RevokedToken } from '../facts/revocations.ts';
import { type IdentityObserver, silentIdentityObserver } from './identity-observer.ts';
import type { Client, Directory, IdentitySource } from './identity-source.ts';

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
    this.#tokens = tokens;
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
    const principal = this.#tokens.get(digest);
    return this.#revocations.refuse([digest], principal?.id) ?? principal ?? 'unknown-token';
  }
}
