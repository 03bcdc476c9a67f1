import { findCatalogResource } from '../catalog/catalog.ts';
import type { ActingCaller } from '../http/call.ts';

type Owner = 'account_id' | 'counterparty_account_id' | 'organization_id' | 'person_id';

/** A resource is visible where the column holds the id. */
export interface Visibility {
  readonly column: Owner;
  readonly id: string;
}

/**
 * What a caller sees of a kind, as alternatives: what its Account owns or is the other party of, what belongs to its
 * Organization, what belongs to itself. The same scopes receive the kind's events and fetch the rest of the resource.
 */
export function visibilityOf(kind: string, caller: ActingCaller): Visibility[] {
  const entry = findCatalogResource(kind);
  if (!entry) throw new Error(`The catalog has no resource "${kind}".`);
  const ids: Record<Owner, string | undefined | false> = {
    account_id: entry.scopes.includes('Account') && caller.accountId,
    counterparty_account_id: entry.bothParties && caller.accountId,
    organization_id:
      (entry.scopes.includes('Organization') || entry.sharedInOrganization) && caller.organizationId,
    person_id: entry.scopes.includes('Person') && caller.principalId,
  };
  return Object.entries(ids).flatMap(([column, id]) => (id ? [{ column: column as Owner, id }] : []));
}
