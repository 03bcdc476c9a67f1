import type { Database } from '../database/schema.ts';
import type { Resource } from '../events/transitions.ts';
import type { ActingCaller } from '../http/call.ts';
import { notFound } from '../http/problems.ts';

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
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly events?: Readonly<Record<string, string>>;
}

/** The row of a new resource, ready to be inserted. */
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

/** What a client sees of a resource. */
export function resourceBody(resource: Resource): Record<string, unknown> {
  return {
    id: resource.id,
    status: resource.status,
    ...(resource.external_id !== null && { externalId: resource.external_id }),
    ...resource.fields,
    ...(resource.parent && { parent: resource.parent }),
    createdAt: resource.created_at.toISOString(),
    updatedAt: resource.updated_at.toISOString(),
    events: resource.events,
  };
}

/**
 * The resource, when the acting Account owns it or is its other party (both are sent its events and fetch the rest
 * here); 404 otherwise, whether it exists or not.
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
    .where((where) =>
      where.or([
        where('account_id', '=', caller.accountId),
        where('counterparty_account_id', '=', caller.accountId),
        where('person_id', '=', caller.principalId),
      ]),
    )
    .executeTakeFirst();
  if (!resource) throw notFound(kind.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase(), id);
  return resource;
}
