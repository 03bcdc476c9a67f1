import type { Database } from '../database/schema.ts';
import type { Call } from '../http/call.ts';
import { notFound } from '../http/problems.ts';
import type { Handlers } from '../http/routes.ts';
import { matchesFilters, readFilters } from '../lists/filters.ts';
import { type ListSource, MOST_COUNTED, readPage } from '../lists/page.ts';
import { BULK_DISMISS } from '../operations/bulk-dismiss.ts';
import { type Operation, operationBody } from '../operations/operation.ts';
import { acceptOperation } from '../operations/operations.ts';
import { ok, pathId, type Services } from './services.ts';

/** `/v3/platform/operations`, and the operation that dismisses notifications. */
export function operationHandlers({ jobs, sealer, settings }: Services): Handlers {
  return {
    listOperations: async (call, db) => ok(await readPage(sealer, call, operationList(db, call))),
    async getOperation(call, db) {
      const id = pathId(call, 'operationId');
      const operation = await selectVisible(db, call).selectAll().where('id', '=', id).executeTakeFirst();
      if (!operation) throw notFound('operation', id);
      return ok(operationBody(operation));
    },
    async bulkDismissNotifications(call, db) {
      const input = call.body as { notificationIds: string[] };
      const work = { type: BULK_DISMISS, input };
      return { status: 202, body: await acceptOperation(db, jobs, call.caller, work, settings.now()) };
    },
  };
}

/** The operations of the acting Account, and what the Person that calls started for any Account. */
function selectVisible(db: Database, { caller }: Call) {
  return db.selectFrom('operations').where((where) =>
    // Nothing equals null, which stands for a ServiceAccount.
    where.or([where('account_id', '=', caller.accountId), where('person_id', '=', caller.personId ?? null)]),
  );
}

function operationList(db: Database, call: Call): ListSource<Operation> {
  const select = () => selectVisible(db, call).where(matchesFilters(readFilters(call)));
  return {
    fetch: (afterKey, limit) =>
      select().selectAll().where('sequence', '>', afterKey).orderBy('sequence').limit(limit).execute(),
    keyOf: (row) => String(row.sequence),
    toBody: operationBody,
    async count() {
      const row = await db
        .selectFrom(
          select()
            .select('sequence')
            .limit(MOST_COUNTED + 1)
            .as('found'),
        )
        .select((fn) => fn.fn.countAll().as('count'))
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },
  };
}
