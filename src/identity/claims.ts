import { type Account, isId, type Principal } from '../domain/caller.ts';
import { LAST_DAY } from '../domain/limits/calendar.ts';
import type { IdentityOf } from './identity-observer.ts';

export type Claims = Readonly<Record<string, unknown>>;

/**
 * The principal described by verified claims; 'no-account' if they are incomplete or ambiguous. A token without a type is a
 * ServiceAccount, which has the fewest rights.
 */
export function readPrincipal(claims: Claims, names: IdentityOf<'jwt'>['claims']): Principal | 'no-account' {
  const id = claims[names.principal];
  const type = claims[names.type] ?? 'ServiceAccount';
  const account = claims[names.account] ?? undefined;
  const organization = claims[names.organization] ?? undefined;
  const listed = listOf(claims[names.actsFor] ?? []);
  if (!isId(id) || !isOptionalId(account) || !isOptionalId(organization) || listed === undefined) {
    return 'no-account';
  }
  const planned = { ...planIn(claims[names.plan]), ...startIn(claims[names.periodStartsOn]) };
  const actsFor = accountsOf(listed, organization);
  if (actsFor === undefined || (type !== 'Person' && type !== 'ServiceAccount')) return 'no-account';
  if (account !== undefined) {
    const claimedAccounts = new Map([...actsFor, [account, accountIn(organization)]]);
    return { id, type, account, actsFor: new Set(actsFor.keys()), claimedAccounts, ...planned };
  }
  if (type === 'Person' || organization === undefined) return 'no-account';
  return { id, type, organization, claimedAccounts: actsFor, ...planned };
}

/** A list, or space-separated text as in OAuth scopes (RFC 6749 section 3.3). */
function listOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  return typeof value === 'string' ? value.split(' ').filter((word) => word !== '') : undefined;
}

/** An Account given only by its id belongs to the Organization of the token. */
function accountsOf(
  listed: readonly unknown[],
  organization: string | undefined,
): Map<string, Account> | undefined {
  const accounts = new Map<string, Account>();
  for (const entry of listed) {
    const one: Claims =
      typeof entry === 'string' ? { account: entry, organization } : ((entry ?? {}) as Claims);
    const owner = one.organization ?? undefined;
    if (!isId(one.account) || !isOptionalId(owner)) return undefined;
    accounts.set(one.account, { ...accountIn(owner), ...planIn(one.plan), ...startIn(one.periodStartsOn) });
  }
  return accounts;
}

function accountIn(organization: string | undefined): Account {
  return organization === undefined ? {} : { organization };
}

function isOptionalId(value: unknown): value is string | undefined {
  return value === undefined || isId(value);
}

/** The plan of a record from outside. What is no name is no plan: a plan never makes a request fail. */
export function planIn(value: unknown): { readonly plan?: string } {
  return isId(value) ? { plan: value } : {};
}

/** The first day of months in a record from outside. Any other value is ignored, so it never makes a request fail. */
export function startIn(value: unknown): { readonly periodStartsOn?: number } {
  const day = typeof value === 'string' && /^\d{1,2}$/.test(value) ? Number(value) : value;
  if (typeof day !== 'number' || !Number.isInteger(day) || day < 1 || day > LAST_DAY) return {};
  return { periodStartsOn: day };
}
