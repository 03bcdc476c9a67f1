import { randomUUID } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Database, Tables } from '../database/schema.ts';
import { type EventType, eventTypes } from '../events/event-types.ts';
import type { Call } from '../http/call.ts';
import type { Handlers } from '../http/routes.ts';
import { readFilters, toTime } from '../lists/filters.ts';
import { type ListSource, readPage } from '../lists/page.ts';
import { insertResource, resourceBody } from '../resources/resources.ts';
import { ok, type Services } from './services.ts';

interface SessionBody {
  readonly externalId?: string;
  readonly ttlSeconds?: number;
}

const DEFAULT_SESSION_SECONDS = 900;

/** `/v3/platform/…`: event types, audit logs and sessions. */
export function platformHandlers({ sealer, settings }: Services): Handlers {
  return {
    // The contract's example reads all types in one response, so the default page size is all of them.
    listWebhookEventTypes: async (call) =>
      ok(await readPage(sealer, call, eventTypeList(call), { defaultSize: eventTypes.length })),
    listAuditLogs: async (call, db) => ok(await readPage(sealer, call, auditLogList(db, call))),
    async createSession(call, db) {
      const { externalId = null, ttlSeconds = DEFAULT_SESSION_SECONDS } = (call.body ?? {}) as SessionBody;
      const at = settings.now();
      const expiresAt = new Date(at.getTime() + ttlSeconds * 1000).toISOString();
      const session = await insertResource(db, {
        id: `session_${randomUUID()}`,
        kind: 'Session',
        status: 'Activated',
        account_id: call.caller.accountId,
        external_id: externalId,
        fields: { expiresAt },
        events: { createdAt: at.toISOString() },
        at,
      });
      return { status: 201, body: resourceBody(session) };
    },
  };
}

/** The event types that match the filters, in the catalog's order. */
function eventTypeList(call: Call): ListSource<readonly [number, EventType]> {
  const filters = readFilters(call);
  const matching = [...eventTypes.entries()].filter(([, type]) =>
    filters.every(({ field, value }) => String(type[field as keyof EventType]) === value),
  );
  return {
    fetch: async (afterKey, limit) =>
      matching.filter(([index]) => index + 1 > Number(afterKey)).slice(0, limit),
    keyOf: ([index]) => String(index + 1),
    toBody: ([, type]) => type,
    count: async () => matching.length,
  };
}

/** Every write of the acting Account. The list has no total, because it only grows. */
function auditLogList(db: Database, call: Call): ListSource<Selectable<Tables['audit_logs']>> {
  // The only filter that openapi.yaml declares here is `filter[createdAt][gte]`.
  const [from] = readFilters(call).map(toTime);
  return {
    fetch: (afterKey, limit) =>
      db
        .selectFrom('audit_logs')
        .selectAll()
        .where('account_id', '=', call.caller.accountId)
        .where('sequence', '>', afterKey)
        .$if(from !== undefined, (query) => query.where('created_at', '>=', new Date(from ?? 0)))
        .orderBy('sequence')
        .limit(limit)
        .execute(),
    keyOf: (row) => String(row.sequence),
    toBody: (row) => ({
      id: row.id,
      operation: row.operation,
      target: row.target,
      principalId: row.principal_id,
      createdAt: row.created_at.toISOString(),
    }),
  };
}
