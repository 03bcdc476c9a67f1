import type { ScopeName } from '../../domain/buckets.ts';
import type { Account, Principal } from '../../domain/caller.ts';
import type { Directory } from '../../identity/identity.ts';
import type { Activity } from './activity.ts';

/** An Account, Organization, Person or address, and whose limits apply to it. */
export interface Owner {
  readonly scope: ScopeName;
  readonly id: string;
  /** The Organization of an Account or of a Person's Account. */
  readonly organization: string | undefined;
  readonly hasOrganizationLimit: boolean;
  /** The hash tag of its keys. */
  readonly hashTag: string;
}

/** What the admin port is asked about. */
export interface OwnerQuery {
  readonly scope: ScopeName;
  readonly id: string;
  /** The Organization of an Account, from somebody who knows it. */
  readonly organization?: string | undefined;
  /** The Principal Account of a Person, likewise. */
  readonly account?: string | undefined;
}

/** Where owners are found. */
export interface OwnerSources {
  readonly directory: Directory;
  readonly activity: Activity;
  /** The Principal Account of a Person in the identities file. */
  homeOf(person: string): string | undefined;
}

/** Asks a directory in nobody's name: it knows what is not in a token. */
const NOBODY: Principal = { id: '', type: 'Person', account: '', actsFor: new Set() };

/**
 * Finds out which Organization an owner belongs to, because that decides where its buckets are. What the query says comes
 * first, then the directory, then the requests that reached this replica. Undefined where none of them knows.
 */
export async function findOwner(query: OwnerQuery, sources: OwnerSources): Promise<Owner | undefined> {
  const { scope, id } = query;
  if (scope === 'organization' || scope === 'address') {
    return { scope, id, organization: undefined, hasOrganizationLimit: false, hashTag: id };
  }
  const account = scope === 'account' ? id : (query.account ?? sources.homeOf(id));
  const known = await findAccount(account, query.organization, sources.directory);
  if (known !== undefined && account !== undefined) return ownerIn(query, account, known);
  const payer = sources.activity.payerOf(scope, id);
  if (payer === undefined) return undefined;
  const { organization, hasOrganizationLimit = false, hashTag } = payer;
  return { scope, id, organization, hasOrganizationLimit, hashTag };
}

async function findAccount(
  account: string | undefined,
  organization: string | undefined,
  directory: Directory,
): Promise<Account | undefined> {
  if (account === undefined) return undefined;
  if (organization !== undefined) return { organization };
  const found = await directory.find(account, NOBODY);
  return found === 'unavailable' ? undefined : found;
}

function ownerIn({ scope, id }: OwnerQuery, account: string, known: Account): Owner {
  const { organization, organizationLimit } = known;
  const hasOrganizationLimit = organization !== undefined && organizationLimit !== false;
  return { scope, id, organization, hasOrganizationLimit, hashTag: organization ?? account };
}
