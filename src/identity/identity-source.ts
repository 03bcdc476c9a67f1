/** Interfaces for identifying callers and looking up Accounts. */

import type { Awaitable } from '../domain/awaitable.ts';
import type { Account, Principal } from '../domain/caller.ts';
import type { LastDigest } from '../domain/token-digest.ts';
import type { RevokedToken } from '../facts/revocations.ts';
import type { CredentialField } from '../http/message/headers.ts';

/** The Account, undefined if it does not exist, or 'unavailable' if the provider cannot be reached. */
export type FoundAccount = Account | undefined | 'unavailable';

/** Why a credential is refused. Operators see it; the client does not. `missing`: the request has none. */
export type TokenFault =
  | 'missing'
  | 'malformed'
  | 'unknown-token'
  | 'revoked'
  | 'expired'
  | 'not-yet-valid'
  | 'issuer'
  | 'audience'
  | 'signature'
  | 'unknown-key'
  | 'no-account';

/** Whose token it is, or why it is refused. 'unavailable' if the provider cannot be reached. */
export type Authentication = Principal | RevokedToken | TokenFault | 'unavailable';

/** Who presents a token. */
export interface Client {
  /** The network that it is in, for the provider. */
  readonly clientNetwork: string;
  /** Of its connection. */
  readonly lastDigest?: LastDigest | undefined;
}

/** Authenticates tokens. */
export interface IdentitySource {
  /** The principal of a bearer token, at once if it is cached. It never rejects. */
  principalOf(token: string, client?: Client): Awaitable<Authentication>;
}

/** Looks up Accounts and their Organizations. */
export interface Directory {
  /**
   * Answers at once if the Account is cached. Never rejects.
   *
   * @param principal the caller; some directories use the claims of its token
   */
  find(account: string, principal: Principal): Awaitable<FoundAccount>;
}

/** A credential that is accepted besides a bearer token. */
export interface Credential extends CredentialField {
  readonly source: IdentitySource;
  readonly directory: Directory;
}
