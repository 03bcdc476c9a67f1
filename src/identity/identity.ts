import type { Principal } from '../gateway/types.ts';

/** Proves who sent a token. */
export interface IdentitySource {
  /** The principal of a bearer token; undefined when the token is not valid. */
  principalOf(token: string): Principal | undefined | Promise<Principal | undefined>;
}

/** What is known of Accounts: which exist, and to which Organization each belongs. */
export interface Directory {
  hasAccount(account: string): boolean;
  organizationOf(account: string): string | undefined;
}
