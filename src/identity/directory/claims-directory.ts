import type { Account, Principal } from '../../domain/caller.ts';
import type { Directory } from '../identity.ts';

/** Knows of Accounts what each principal's own token says. Its issuer answers for all tokens saying the same. */
export class ClaimsDirectory implements Directory {
  find(account: string, { claimedAccounts }: Principal): Account | undefined {
    return claimedAccounts?.get(account);
  }
}
