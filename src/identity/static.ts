import { hash } from 'node:crypto';
import type { Identities } from '../config/identities.ts';
import type { Principal } from '../gateway/types.ts';
import type { Directory, IdentitySource } from './identity.ts';

/** How the file marks a token that it gives as its digest, in lower-case hex. */
const DIGEST = 'sha256:';

/**
 * Tokens, principals and Accounts from the identities file. Tokens are kept and looked up as SHA-256 digests: the
 * time of a look-up tells nothing of a token, and a plain token does not outlive the file's reading.
 */
export class StaticIdentities implements IdentitySource, Directory {
  readonly #principals = new Map<string, Principal>();
  readonly #accounts: Identities['accounts'];

  constructor({ tokens, accounts }: Identities) {
    for (const [token, principal] of tokens) {
      this.#principals.set(
        token.startsWith(DIGEST) ? token.slice(DIGEST.length) : digestOf(token),
        principal,
      );
    }
    this.#accounts = accounts;
  }

  principalOf(token: string): Principal | undefined {
    return this.#principals.get(digestOf(token));
  }

  hasAccount(account: string): boolean {
    return this.#accounts.has(account);
  }

  organizationOf(account: string): string | undefined {
    return this.#accounts.get(account)?.organization;
  }
}

function digestOf(token: string): string {
  return hash('sha256', token);
}
