import { type Awaitable, andThen } from '../domain/awaitable.ts';
import type { Caller, Principal } from '../domain/caller.ts';
import { ownCopy } from '../domain/field-name.ts';
import type { Chargeable } from '../domain/limits/selection.ts';
import { Refusal } from '../domain/problems.ts';
import type { Directory, FoundAccount } from '../identity/identity-source.ts';
import { isOwn } from './buckets/plans.ts';
import type { LastPayer } from './last-payer.ts';

const PERSON_ONLY = new Refusal('Forbidden', 'Only a Person may call this operation.');
const NO_ACCOUNT = new Refusal(
  'Forbidden',
  'A service account of an Organization must name an Account in X-Service-Account.',
);
/** The same refusal for foreign and unknown Accounts, so that a client cannot find out which Accounts exist. */
const FOREIGN_ACCOUNT = new Refusal('Forbidden', 'The caller may not act for this Account.');
const UNAVAILABLE = new Refusal(
  'ServiceUnavailable',
  'The target Account cannot be looked up at the moment.',
);

/**
 * The caller with its target Account, or a refusal if the principal may not act for that Account. It comes before the charge, so that
 * nobody can drain a stranger's buckets (contract section 5). Synchronous when the directory has the Account in memory. The
 * directory is only queried for Accounts that the principal may name.
 *
 * @param named the `X-Service-Account` header, undefined when absent
 * @param last whom the last request of the connection was charged to
 */
export function authorise(
  directory: Directory,
  principal: Principal,
  operation: Pick<Chargeable, 'access' | 'isForBoth'>,
  named: string | undefined,
  last?: LastPayer,
): Awaitable<Caller | Refusal> {
  const isPersonOnly = operation.access === 'person';
  if (isPersonOnly && principal.type !== 'Person') return PERSON_ONLY;
  const account = targetOf(principal, named, last);
  if (account === undefined) return NO_ACCOUNT;
  if (principal.account !== undefined && account !== principal.account && !principal.actsFor.has(account)) {
    return FOREIGN_ACCOUNT;
  }
  const found = directory.find(account, principal);
  // What is charged to the Account as well is counted where the Account is: all keys of a charge have one hash tag.
  const isOfPerson = isPersonOnly && operation.isForBoth !== true;
  const home = isOfPerson ? ownAccountOf(principal, account) : account;
  if (home !== account) return authoriseFromHome(directory, principal, account, found, home);
  return andThen(found, (known) => {
    const same = last?.callerOf(principal, account, known);
    if (same !== undefined) return same;
    const caller = callerOf(principal, account, known, home, known);
    if (!(caller instanceof Refusal)) last?.keepCaller(caller, known);
    return caller;
  });
}

/** The id of the target Account, as a text that can be kept: usage, limits and connections remember it. */
function targetOf(principal: Principal, named: string | undefined, last: LastPayer | undefined) {
  if (named === undefined || named === principal.account) return principal.account;
  return last?.accountNamed(named) ?? ownCopy(named);
}

/** A Person's own Account, whatever Account its key belongs to. */
function ownAccountOf({ home, account }: Principal, target: string): string {
  return home?.account ?? account ?? target;
}

/** A Person-only operation for another Account is counted where the Person's own Account is. */
async function authoriseFromHome(
  directory: Directory,
  principal: Principal,
  account: string,
  found: Awaitable<FoundAccount>,
  home: string,
): Promise<Caller | Refusal> {
  const [known, knownHome] = await Promise.all([found, directory.find(home, principal)]);
  return callerOf(principal, account, known, home, knownHome);
}

function callerOf(
  principal: Principal,
  account: string,
  found: FoundAccount,
  home: string,
  foundHome: FoundAccount,
): Caller | Refusal {
  if (found === 'unavailable' || foundHome === 'unavailable') return UNAVAILABLE;
  if (found === undefined || foundHome === undefined) return FOREIGN_ACCOUNT;
  const { organization } = found;
  // A token speaks for its own Account. A token of an Organization speaks for all Accounts of the Organization.
  const own = isOwn(principal, account) ? principal : undefined;
  if (principal.account === undefined && organization !== principal.organization) return FOREIGN_ACCOUNT;
  return {
    principal,
    account,
    organization,
    hasOrganizationLimit: organization !== undefined && found.organizationLimit !== false,
    plan: own?.plan ?? found.plan,
    periodStartsOn: own?.periodStartsOn ?? found.periodStartsOn,
    hashTag: foundHome.organization ?? home,
  };
}
