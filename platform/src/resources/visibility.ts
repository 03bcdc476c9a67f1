import { findCatalogResource } from '../catalog/catalog.ts';
import type { ActingCaller } from '../http/call.ts';

type Owner = 'account_id' | 'counterparty_account_id' | 'organization_id' | 'person_id';

/** A resource is visible if the column equals the id. */
export interface Visibility {
  readonly column: Owner;
  readonly id: string;
}

/**
 * The resources of a kind that a caller may see, as alternatives: its Account is the owner or the other party, its
 * Organization is the owner, or the Person that calls is. The same scopes receive the events of the kind.
 */
export function visibilityOf(kind: string, caller: ActingCaller): Visibility[] {
  const entry = findCatalogResource(kind);
  if (!entry) throw new Error(`The catalog has no resource "${kind}".`);
  const ids: Record<Owner, string | undefined | false> = {
    account_id: entry.scopes.includes('Account') && caller.accountId,
    counterparty_account_id: entry.bothParties && caller.accountId,
    organization_id:
      (entry.scopes.includes('Organization') || entry.sharedInOrganization) && caller.organizationId,
    person_id: entry.scopes.includes('Person') && !entry.keptToAccount && caller.personId,
  };
  return Object.entries(ids).flatMap(([column, id]) => (id ? [{ column: column as Owner, id }] : []));
}

/** The scopes whose events and subscriptions a caller reads: the acting Account, its Organization, and the Person that calls. */
export function scopesOf({ accountId, organizationId, personId }: ActingCaller) {
  return [
    { scope_type: 'Account', scope_id: accountId },
    ...(organizationId === undefined ? [] : [{ scope_type: 'Organization', scope_id: organizationId }]),
    ...(personId === undefined ? [] : [{ scope_type: 'Person', scope_id: personId }]),
  ];
}
