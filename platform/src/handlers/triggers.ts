import { exampleFields, findCatalogResource, newId } from '../catalog/catalog.ts';
import type { Scope } from '../catalog/resource.ts';
import type { Database } from '../database/schema.ts';
import { findEventType } from '../events/event-types.ts';
import { type Resource, recordTransition } from '../events/transitions.ts';
import type { ActingCaller } from '../http/call.ts';
import { invalid, PlatformError } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { operationBody } from '../operations/operation.ts';
import { triggerOperation } from '../operations/triggered.ts';
import { findOwnedResource, insertResource, resourceBody } from '../resources/resources.ts';
import { checkRights } from './api-keys.ts';
import type { Services } from './services.ts';

interface TriggerBody {
  readonly type: string;
  /** An existing resource of the kind. Default: a made-up one. */
  readonly resourceId?: string;
  /** The other party of an event that is sent to both. */
  readonly counterpartyAccountId?: string;
  readonly channel?: 'InApp' | 'Email' | 'SMS';
}

/** Notification events that happen once per channel (contract section 6.4). */
const PER_CHANNEL = new Set(['Notification.Sent', 'Notification.Delivered', 'Notification.Failed']);

/** `/v3/platform/event-triggers`: triggers any published event, to develop a subscriber with. */
export function triggerHandlers({ settings }: Services): Handlers {
  return {
    async triggerEvent(call, db) {
      if (!settings.triggers) {
        throw new PlatformError(
          404,
          'ResourceNotFound',
          'Events are not made up here: triggers are switched off.',
        );
      }
      const body = call.body as TriggerBody;
      if (!findEventType(body.type)?.availableForSubscription) {
        throw invalid('type', `"${body.type}" is not a published event type`);
      }
      const [kind = '', part = ''] = body.type.split('.');
      const at = settings.now();
      if (kind === 'Operation') {
        const operation = await triggerOperation(db, call.caller, part, body.resourceId, at);
        return { status: 201, body: { type: body.type, resource: operationBody(operation) } };
      }
      const resource = await resourceOf(db, call.caller, kind, body, at);
      const context = PER_CHANNEL.has(body.type) ? { channel: body.channel ?? 'InApp' } : undefined;
      const changed = await recordTransition(db, resource, { part, at, ...(context && { context }) });
      return { status: 201, body: { type: body.type, resource: resourceBody(changed) } };
    },
  };
}

/** The resource that the request names, or a made-up one. */
async function resourceOf(
  db: Database,
  caller: ActingCaller,
  kind: string,
  { resourceId, counterpartyAccountId }: TriggerBody,
  at: Date,
): Promise<Resource> {
  if (!resourceId) return makeUp(db, caller, kind, counterpartyAccountId, at);
  const resource = await findOwnedResource(db, caller, kind, resourceId);
  // Events such as `ApiKey.Revoked` and `ServiceAccount.Activated` end or restore what a principal may do.
  await checkRights(db, caller, resource);
  return resource;
}

/** A resource that belongs to every scope that can receive the kind's events, with the members of the catalog. */
async function makeUp(
  db: Database,
  caller: ActingCaller,
  kind: string,
  counterpartyAccountId: string | undefined,
  at: Date,
): Promise<Resource> {
  const entry = findCatalogResource(kind);
  if (!entry) throw new Error(`The catalog has no resource "${kind}".`);
  checkRecipient(kind, caller);
  const counterparty = entry.bothParties ? await counterpartyOf(db, caller, counterpartyAccountId) : null;
  const parent = entry.parent
    ? await makeUp(db, caller, entry.parent, counterparty ?? undefined, at)
    : undefined;
  const receives = (scope: Scope) => entry.scopes.includes(scope);
  return insertResource(db, {
    id: newId(kind),
    kind,
    status: 'Created',
    external_id: `triggered-${at.getTime()}`,
    // The event of a Person also names the Account, which does not receive it.
    account_id: receives('Account') || receives('Person') ? caller.accountId : null,
    counterparty_account_id: counterparty,
    organization_id: receives('Organization') ? (caller.organizationId ?? null) : null,
    person_id: receives('Person') ? (caller.personId ?? null) : null,
    ...(parent && { parent: { type: parent.kind, id: parent.id } }),
    fields: exampleFields(entry),
    at,
  });
}

/** The other party named by the request, or one with which the acting Account has resources. */
async function counterpartyOf(
  db: Database,
  { accountId }: ActingCaller,
  named: string | undefined,
): Promise<string> {
  if (named === accountId) throw invalid('counterpartyAccountId', 'is the acting Account itself');
  if (named !== undefined) return named;
  const dealings = await db
    .selectFrom('resources')
    .select('counterparty_account_id as id')
    .where('kind', '=', 'Payable')
    .where('account_id', '=', accountId)
    .where('counterparty_account_id', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  const account =
    dealings ??
    (await db
      .selectFrom('resources')
      .select('id')
      .where('kind', '=', 'Account')
      .where('id', '<>', accountId)
      .limit(1)
      .executeTakeFirst());
  if (!account?.id) throw invalid('counterpartyAccountId', 'is missing, and no other Account is known');
  return account.id;
}

/** Throws a 422 if the caller is of no kind that can receive the event. */
function checkRecipient(kind: string, caller: ActingCaller): void {
  if (kind === 'Organization' && caller.organizationId === undefined) {
    throw invalid('type', 'is sent to an Organization, but the acting Account belongs to none');
  }
  if (kind === 'Notification' && caller.personId === undefined) {
    throw invalid('type', 'is sent to a Person, but the caller is a ServiceAccount');
  }
}
