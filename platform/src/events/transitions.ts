import type { Selectable } from 'kysely';
import { findCatalogResource, spaced } from '../catalog/catalog.ts';
import type { Database, Tables } from '../database/schema.ts';
import { invalid, notFound } from '../http/problems.ts';
import { findEventType } from './event-types.ts';
import { type Recipient, writeOccurrence } from './outbox.ts';

export type Resource = Selectable<Tables['resources']>;

export interface Transition {
  /** The event part of the type: `Paid` for `Invoice.Paid`. */
  readonly part: string;
  readonly at: Date;
  /** Per-leg events, such as `{ channel: 'Email' }` for a Notification (contract section 6.4). */
  readonly context?: Readonly<Record<string, string>>;
}

/** Event parts that do not change the state of the resource. */
const KEEPS_STATUS = new Set([
  ...['Created', 'Updated', 'Refreshed', 'TokenRefreshed', 'Reminded', 'DepositConfirmed'],
  ...['EvidenceApproved', 'EvidenceRejected'],
]);

/** States that a resource never leaves (contract sections 3 and 6.4). */
const FINAL: Readonly<Record<string, string>> = {
  Payable: 'Returned',
  Mandate: 'Consumed',
  ApiKey: 'Revoked',
};

/**
 * Records an event of a resource: sets `events.<event>At` (contract section 2.5), changes the status, and writes the
 * event for every recipient, all in `db`'s transaction. The platform's own states (`Open`) have no published event; for
 * them only the resource changes.
 */
export async function recordTransition(
  db: Database,
  { id }: { readonly id: string },
  transition: Transition,
): Promise<Resource> {
  const { part, at } = transition;
  // Read the resource again under a lock: transitions run one at a time, so they cannot overwrite each other's result.
  const resource = await lockResource(db, id);
  if (FINAL[resource.kind] === resource.status) {
    const what = spaced(resource.kind);
    // Only triggered events come this far: what else changes a resource looks at its status first.
    throw invalid(
      'resourceId',
      `names a ${what} that is ${resource.status}, which is final: create a new ${what}`,
    );
  }
  const { status, events } = afterPart(resource, part, at);
  await db
    .updateTable('resources')
    .set({ status, events: JSON.stringify(events), updated_at: at })
    .where('id', '=', resource.id)
    .execute();
  const changed = { ...resource, status, events, updated_at: at };
  if (findEventType(`${resource.kind}.${part}`)?.availableForSubscription)
    await report(db, changed, transition);
  return changed;
}

/** Status and timestamps after an event part (contract section 2.5). */
export function afterPart({ status, events }: Pick<Resource, 'status' | 'events'>, part: string, at: Date) {
  return {
    status: KEEPS_STATUS.has(part) ? status : part,
    events: { ...events, [timestampName(part)]: at.toISOString() },
  };
}

/** The current state of the resource, locked until `db`'s transaction ends. */
export async function lockResource(db: Database, id: string): Promise<Resource> {
  const resource = await db
    .selectFrom('resources')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (!resource) throw notFound('resource', id);
  return resource;
}

function report(db: Database, resource: Resource, { part, at, context }: Transition): Promise<void> {
  return writeOccurrence(db, {
    type: `${resource.kind}.${part}`,
    at,
    data: {
      id: resource.id,
      status: resource.status,
      ...(resource.external_id !== null && { externalId: resource.external_id }),
    },
    ...(resource.account_id !== null && { accountId: resource.account_id }),
    ...(context && { context }),
    ...(resource.parent && { parent: resource.parent }),
    // Only on events ending in DepositConfirmed (contract section 2.3). The contract leaves its members open.
    ...(part === 'DepositConfirmed' && {
      confirmation: {
        source: 'OriginatingBank',
        reference: `trace-${resource.id}`,
        confirmedAt: at.toISOString(),
      },
    }),
    recipients: recipientsOf(resource),
  });
}

function recipientsOf(resource: Resource): Recipient[] {
  const isForBoth = findCatalogResource(resource.kind)?.bothParties === true;
  const accounts = new Set([resource.account_id, isForBoth ? resource.counterparty_account_id : null]);
  return [
    ...[...accounts].map((id) => ({ scope: 'Account' as const, id })),
    { scope: 'Organization' as const, id: resource.organization_id },
    { scope: 'Person' as const, id: resource.person_id },
  ].flatMap(({ scope, id }) => (id === null ? [] : [{ scope, id }]));
}

/** `paidAt` for `Paid`. */
export function timestampName(part: string): string {
  return `${part.charAt(0).toLowerCase()}${part.slice(1)}At`;
}
