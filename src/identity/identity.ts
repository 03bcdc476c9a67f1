/** What the gateway asks of whoever knows callers and Accounts. */

import type { Awaitable } from '../domain/awaitable.ts';
import type { Account, Principal } from '../domain/caller.ts';

/** What was asked for, undefined when there is no such thing, 'unavailable' when nobody can tell just now. */
export type Answer<T> = T | undefined | 'unavailable';

/** An answer at once where it is known already, else later. It never rejects. */
export type Lookup<T> = Awaitable<Answer<T>>;

/** The address of the client whose request it is; called only where a token has to be looked up elsewhere. */
export type Client = () => string;

/** Proves who sent a token. */
export interface IdentitySource {
  /** The principal of a bearer token; undefined when the token is not valid. */
  principalOf(token: string, client?: Client): Lookup<Principal>;
}

/** What is known of Accounts: which exist, and to which Organization each belongs. */
export interface Directory {
  /** `principal` is who asks: some directories know no more than what its token says. */
  find(account: string, principal: Principal): Lookup<Account>;
}
