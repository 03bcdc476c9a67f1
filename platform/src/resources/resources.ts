import { sql } from 'kysely';
import { spaced } from '../catalog/catalog.ts';
import type { Database } from '../database/schema.ts';
import type { Resource } from '../events/transitions.ts';
import type { ActingCaller } from '../http/call.ts';
import { forbidden, notFound } from '../http/problems.ts';
import { visibilityOf } from './visibility.ts';

export interface NewResource {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly at: Date;
  readonly account_id?: string | null;
  readonly counterparty_account_id?: string | null;
  readonly organization_id?: string | null;
  readonly person_id?: string | null;
  readonly parent?: { readonly type: string; readonly id: string };
  readonly external_id?: string | null;
  readonly fields?: object;
  readonly events?: Readonly<Record<string, string>>;
}

/** The row of a new resource, for insertion. */
export function resourceRow(resource: NewResource) {
  const { at, parent, fields = {}, events = {}, ...columns } = resource;
  return {
    account_id: null,
    counterparty_account_id: null,
    organization_id: null,
    person_id: null,
    external_id: null,
    ...columns,
    parent: parent ? JSON.stringify(parent) : null,
    fields: JSON.stringify(fields),
    events: JSON.stringify(events),
    created_at: at,
    updated_at: at,
  };
}

export function insertResource(db: Database, resource: NewResource): Promise<Resource> {
  return db.insertInto('resources').values(resourceRow(resource)).returningAll().executeTakeFirstOrThrow();
}

/** Sets members of a resource. The transition that follows sets `updatedAt`. */
export async function updateFields(
  db: Database,
  id: string,
  changes: Readonly<Record<string, unknown>>,
): Promise<void> {
  await db
    .updateTable('resources')
    .set({ fields: sql`fields || ${JSON.stringify(changes)}::jsonb` })
    .where('id', '=', id)
    .execute();
}

/** The public form of a resource. */
export function resourceBody(resource: Resource): Record<string, unknown> {
  return {
    id: resource.id,
    status: resource.status,
    ...(resource.external_id !== null && { externalId: resource.external_id }),
    ...resource.fields,
    ...(resource.parent && { parent: resource.parent }),
    ...partiesOf(resource),
    createdAt: resource.created_at.toISOString(),
    updatedAt: resource.updated_at.toISOString(),
    events: resource.events,
  };
}

/** The owner of the resource. */
function partiesOf(resource: Resource): Record<string, string> {
  const parties = {
    accountId: resource.account_id,
    counterpartyAccountId: resource.counterparty_account_id,
    organizationId: resource.organization_id,
    personId: resource.person_id,
  };
  return Object.fromEntries(
    Object.entries(parties).flatMap(([name, id]) => (id === null ? [] : [[name, id]])),
  );
}

/**
 * The resource, if the caller belongs to a scope that receives its events: its Account, the other party, its
 * Organization or its Person. Otherwise throws a 404, whether the resource exists or not.
 */
export async function findResource(
  db: Database,
  caller: ActingCaller,
  kind: string,
  id: string,
): Promise<Resource> {
  const resource = await db
    .selectFrom('resources')
    .selectAll()
    .where('kind', '=', kind)
    .where('id', '=', id)
    .where((where) => where.or(visibilityOf(kind, caller).map(({ column, id }) => where(column, '=', id))))
    .executeTakeFirst();
  if (!resource) throw notFound(spaced(kind), id);
  return resource;
}

/** The resource, for a write. Throws a 403 for callers who may only read it, such as the payee of a payable. */
export async function findOwnedResource(
  db: Database,
  caller: ActingCaller,
  kind: string,
  id: string,
): Promise<Resource> {
  const resource = await findResource(db, caller, kind, id);
  const isOfOrganization = resource.account_id === null && resource.organization_id === caller.organizationId;
  const isOwned =
    resource.account_id === caller.accountId || resource.person_id === caller.personId || isOfOrganization;
  if (!isOwned) throw forbidden(`Only the owner of the ${spaced(kind)} "${id}" may change it.`);
  return resource;
}
