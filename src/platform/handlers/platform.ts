import { randomUUID } from 'node:crypto';
import { eventTypes } from '../events/event-types.ts';
import { notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { readPage } from '../lists/page.ts';
import { ofAccount, ofOrganization, ofPerson } from '../lists/scope.ts';
import { BULK_DISMISS } from '../operations/bulk-dismiss.ts';
import { operationBody } from '../operations/operation.ts';
import { acceptOperation } from '../operations/operations.ts';
import { insertResource, resourceBody } from '../resources/resources.ts';
import { auditLogList } from './audit-logs.ts';
import { listOf, ok, pathId, type Services } from './services.ts';

interface SessionBody {
  readonly externalId?: string;
  readonly ttlSeconds?: number;
}

const DEFAULT_SESSION_SECONDS = 900;

/** `/v3/platform/…`, but for webhook subscriptions. */
export function platformHandlers(services: Services): Handlers {
  const { jobs, sealer, settings } = services;
  return {
    listWebhookEventTypes: () =>
      ok({ data: eventTypes, pagination: { nextPageToken: '', totalSize: eventTypes.length } }),
    // Contract section 4.1 rule 6: these two start again instead of refusing a token.
    listAccounts: listOf(services, 'Account', ofOrganization, { onStaleToken: 'restart' }),
    listPersons: listOf(services, 'Person', ofAccount, { onStaleToken: 'restart' }),
    listAuditLogs: async (call, db) => ok(await readPage(sealer, call, auditLogList(db, call))),
    listNotifications: listOf(services, 'Notification', ofPerson),
    listMfaFactors: listOf(services, 'MfaFactor', ofPerson),
    async getOperation(call, db) {
      const id = pathId(call, 'operationId');
      const operation = await db
        .selectFrom('operations')
        .selectAll()
        .where('id', '=', id)
        .where((where) =>
          where.or([
            where('account_id', '=', call.caller.accountId),
            where('person_id', '=', call.caller.principalId),
          ]),
        )
        .executeTakeFirst();
      if (!operation) throw notFound('operation', id);
      return ok(operationBody(operation));
    },
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
    async bulkDismissNotifications(call, db) {
      const input = call.body as { notificationIds: string[] };
      const body = await acceptOperation(db, jobs, call.caller, BULK_DISMISS, input, settings.now());
      return { status: 202, body };
    },
  };
}
