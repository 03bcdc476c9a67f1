import { createHash, randomBytes } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { sql } from 'kysely';
import { newId } from '../catalog/catalog.ts';
import type { Database } from '../database/schema.ts';
import { lockResource, type Resource, recordTransition } from '../events/transitions.ts';
import type { ActingCaller, Call } from '../http/call.ts';
import { forbidden, invalid, notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { findOwnedResource, insertResource, resourceBody } from '../resources/resources.ts';
import { ok, pathId, type Services } from './services.ts';

interface ApiKeyBody {
  readonly name: string;
  /** Default: the caller. */
  readonly principalId?: string;
  readonly externalId?: string;
}

/** Prefix by which the gateway and secret scanners recognise a key. */
const PREFIX = 'wk_';
const KEY_BYTES = 32;
/** Number of characters shown in lists. 4 of 43 reveal nothing about the others. */
const HINT_LENGTH = PREFIX.length + 4;

/** States in which a ServiceAccount neither gets keys nor authenticates with one. */
const SWITCHED_OFF = ['Inactivated', 'Disabled'];

/** `/v3/platform/api-keys`: issuing and revoking (contract section 5). */
export function apiKeyHandlers({ settings }: Services): Handlers {
  return {
    async createApiKey(call, db) {
      const { name, principalId = call.caller.principalId, externalId = null } = call.body as ApiKeyBody;
      const { principalType, ...owner } = await ownerOf(db, call, principalId);
      const key = PREFIX + randomBytes(KEY_BYTES).toString('base64url');
      const at = settings.now();
      const resource = await insertResource(db, {
        id: newId('ApiKey'),
        kind: 'ApiKey',
        status: 'Active',
        external_id: externalId,
        ...owner,
        fields: { name, principalId, principalType, hint: key.slice(0, HINT_LENGTH) },
        at,
      });
      await db
        .insertInto('api_keys')
        .values({ digest: createHash('sha256').update(key).digest('hex'), resource_id: resource.id })
        .execute();
      const created = await recordTransition(db, resource, { part: 'Created', at });
      return { status: 201, body: resourceBody(created), once: { key } };
    },
    async revokeApiKey(call, db) {
      const { id } = await findOwnedResource(db, call.caller, 'ApiKey', pathId(call, 'apiKeyId'));
      // A parallel request may be revoking it.
      const key = await lockResource(db, id);
      await checkRights(db, call.caller, key);
      if (key.status === 'Revoked') return ok(resourceBody(key));
      return ok(resourceBody(await recordTransition(db, key, { part: 'Revoked', at: settings.now() })));
    },
  };
}

/**
 * Throws a 403 for a ServiceAccount that has fewer rights than what it would change: the key of a Person, or what belongs to the
 * Organization, such as another ServiceAccount and its key.
 */
export async function checkRights(db: Database, caller: ActingCaller, resource: Resource): Promise<void> {
  if (caller.personId !== undefined) return;
  const { principalType, principalId = resource.id } = resource.fields;
  if (principalType === 'Person') throw forbidden('A ServiceAccount may not change the key of a Person.');
  if (resource.account_id !== null || principalId === caller.principalId) return;
  await checkOrganizationRights(db, caller);
}

/** Throws a 403 for a ServiceAccount that the acting Account's Organization does not own. */
export async function checkOrganizationRights(
  db: Database,
  { personId, principalId, organizationId }: ActingCaller,
): Promise<void> {
  if (personId !== undefined) return;
  const service = await db
    .selectFrom('resources')
    .select('id')
    .where('kind', '=', 'ServiceAccount')
    .where('id', '=', principalId)
    .where('account_id', 'is', null)
    .where('organization_id', '=', organizationId ?? null)
    .executeTakeFirst();
  if (!service)
    throw forbidden('A ServiceAccount of an Account may not change what belongs to its Organization.');
}

/**
 * The owner of a key, who receives its events. A caller may issue keys for itself and for ServiceAccounts of the acting
 * Account, but not for ServiceAccounts of the Organization, which have more rights.
 */
async function ownerOf(db: Database, { caller }: Call, principalId: string) {
  if (principalId === caller.personId) {
    return { principalType: 'Person', account_id: caller.accountId, person_id: principalId };
  }
  const service = await db
    .selectFrom('resources')
    .select(['account_id', 'organization_id', 'status'])
    .where('kind', '=', 'ServiceAccount')
    .where('id', '=', principalId)
    .executeTakeFirst();
  const { accountId, organizationId } = caller;
  const isOfAccount = service?.account_id === accountId;
  if (!isOfAccount && principalId !== caller.principalId)
    throw invalid('principalId', 'names neither the caller nor a ServiceAccount of this Account');
  if (service && SWITCHED_OFF.includes(service.status))
    throw invalid('principalId', `names a ServiceAccount that is ${service.status}`);
  const principalType = 'ServiceAccount';
  if (isOfAccount) return { principalType, account_id: accountId };
  // A ServiceAccount of another Organization may have the same id.
  return organizationId !== undefined && service?.organization_id === organizationId
    ? { principalType, organization_id: organizationId }
    : { principalType, account_id: accountId };
}

/**
 * Returns the principal of a key to the gateway, by the SHA-256 of the key. Requests of clients, which the gateway
 * forwards with `X-Account-Id`, get a 404.
 */
export function serveKeyOwners(app: FastifyInstance, db: Database): void {
  app.get<{ Params: { digest: string } }>('/internal/api-keys/:digest', async (request) => {
    const { digest } = request.params;
    const key = request.headers['x-account-id'] === undefined ? await findKey(db, digest) : undefined;
    if (!key) throw notFound('API key', digest);
    return {
      principal: key.fields.principalId,
      issuedAt: key.created_at.toISOString(),
      // The gateway lets a key act for this Account alone, unless it is the principal's own.
      ...(key.account_id !== null && { account: key.account_id }),
    };
  });
}

/** Excludes revoked keys, and keys of ServiceAccounts that are switched off. */
function findKey(db: Database, digest: string) {
  return db
    .selectFrom('api_keys')
    .innerJoin('resources as key', 'key.id', 'api_keys.resource_id')
    .select(['key.fields', 'key.created_at', 'key.account_id'])
    .where('digest', '=', digest)
    .where('key.status', '<>', 'Revoked')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('resources as service')
            .select('service.id')
            .where('service.kind', '=', 'ServiceAccount')
            .where('service.status', 'in', SWITCHED_OFF)
            .where('service.id', '=', sql<string>`key.fields ->> 'principalId'`)
            .where(sql`key.fields ->> 'principalType'`, '=', 'ServiceAccount'),
        ),
      ),
    )
    .executeTakeFirst();
}
