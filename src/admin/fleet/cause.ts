import type { FleetTop } from './fleet.ts';
import type { RefusedRequest } from './refusals.ts';

/** From this share on, somebody alone is the cause. */
const MOST = 0.5;

/**
 * Who causes most of the refusals: an Account, or the Organization that these Accounts belong to, whose limit may refuse them.
 *
 * @param top of the last ten seconds
 * @param refused requests of everybody in that time
 * @param refusals the latest
 * @returns an id, and its `share` of all refusals, from 0 to 1
 */
export function causeOf(
  { accounts, organizations }: Pick<FleetTop, 'accounts' | 'organizations'>,
  refused: number,
  refusals: readonly RefusedRequest[],
) {
  const ranked = sumOf(accounts);
  // The rest is of addresses and of Accounts that are not ranked.
  if (refused > 2 * ranked) return undefined;
  const total = Math.max(refused, ranked);
  const [account] = accounts.byRefused;
  const [organization] = organizations.byRefused;
  const shareOf = (one: typeof account) => Math.min(1, (one?.refused ?? 0) / Math.max(1, total));
  const share = shareOf(organization);
  if (organization !== undefined && share >= MOST) {
    const isItsLimit = isRefusedByOrganization(organization.id, refusals);
    if (isItsLimit || shareOf(account) < MOST)
      return { scope: 'organization' as const, id: organization.id, share };
  }
  if (account === undefined || account.refused === 0) return undefined;
  return { scope: 'account' as const, id: account.id, share: shareOf(account) };
}

function sumOf({ byRefused }: FleetTop['accounts']): number {
  return byRefused.reduce((sum, { refused }) => sum + refused, 0);
}

/** Whether most of its latest refusals are by limits of the Organization, or by its block. */
function isRefusedByOrganization(id: string, refusals: readonly RefusedRequest[]): boolean {
  const own = refusals.filter(({ organization }) => organization === id);
  const byItsLimit = own.filter(({ detail }) => detail.startsWith('The Organization '));
  return byItsLimit.length * 2 > own.length;
}
