/** Interfaces for identifying callers and looking up Accounts. */

import type { Awaitable } from '../domain/awaitable.ts';
import type { Account, Principal } from '../domain/caller.ts';
import type { LastDigest } from '../domain/token-digest.ts';
import type { RevokedToken } from '../facts/revocations.ts';
import type { CredentialField } from '../http/message/headers.ts';

/** The value, undefined if it does not exist, or 'unavailable' if the provider cannot be reached. */
export type Answer<T> = T | undefined | 'unavailable';

/** An answer, or a promise of one if it is not cached. It never rejects. */
export type Lookup<T> = Awaitable<Answer<T>>;

/** Why a credential is refused. Operators see it; the client does not. `missing`: the request has none. */
export const TOKEN_FAULTS = [
  'missing',
  'malformed',
  'unknown-token',
  'revoked',
  'expired',
  'not-yet-valid',
  'issuer',
  'audience',
  'signature',
  'unknown-key',
  'no-account',
] as const;

export type TokenFault = (typeof TOKEN_FAULTS)[number];

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
  /** @param principal the caller; some directories use the claims of its token */
  find(account: string, principal: Principal): Lookup<Account>;
}

/** A credential that is accepted besides a bearer token. */
export interface Credential extends CredentialField {
  readonly source: IdentitySource;
  readonly directory: Directory;
}
