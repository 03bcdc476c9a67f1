import type { Account, Principal } from '../../domain/caller.ts';
import type { Directory } from '../identity-source.ts';

/**
 * Looks up Accounts in the claims of the principal's token. The issuer must put consistent claims in all tokens.
 * It has a file of its own because each kind of directory has one.
 */
export class ClaimsDirectory implements Directory {
  find(account: string, { claimedAccounts }: Principal): Account | undefined {
    return claimedAccounts?.get(account);
  }
}
