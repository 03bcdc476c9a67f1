import type { Directory } from '../identity/identity.ts';
import { Refusal } from './problems.ts';
import type { Caller, Operation, Principal } from './types.ts';

/** One answer for foreign and unknown Accounts, so that nobody can find out which Accounts exist. */
const FOREIGN_ACCOUNT = 'The caller may not act for the Account that X-Service-Account names.';

/**
 * The Account that this request acts on, once it is certain that the principal may act for it. Nothing is charged
 * before: otherwise anyone could drain a stranger's buckets (contract section 5).
 *
 * @param named the `X-Service-Account` header, undefined when absent
 */
export function authorise(
  directory: Directory,
  principal: Principal,
  operation: Pick<Operation, 'personOnly'>,
  named: string | undefined,
): Caller | Refusal {
  if (operation.personOnly && principal.type !== 'Person') {
    return new Refusal('Forbidden', 'Only a Person may call this operation.');
  }
  const account = named ?? principal.account;
  if (account === undefined) {
    return new Refusal(
      'Forbidden',
      'A service account of an Organization must name an Account in X-Service-Account.',
    );
  }
  if (!mayActFor(directory, principal, account)) return new Refusal('Forbidden', FOREIGN_ACCOUNT);

  const organization = directory.organizationOf(account);
  const home = operation.personOnly ? (principal.account ?? account) : account;
  return { principal, account, organization, shard: directory.organizationOf(home) ?? home };
}

function mayActFor(directory: Directory, principal: Principal, account: string): boolean {
  if (principal.account !== undefined) return account === principal.account || principal.actsFor.has(account);
  return directory.hasAccount(account) && directory.organizationOf(account) === principal.organization;
}
