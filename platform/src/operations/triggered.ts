import type { Database } from '../database/schema.ts';
import type { ActingCaller } from '../http/call.ts';
import { invalid, notFound } from '../http/problems.ts';
import type { Operation, OperationOutcome } from './operation.ts';
import { finishOperation, insertOperation, reportOperation } from './operations.ts';

/** The type of operations that exist only for their event. No job runs them. */
const TRIGGERED = 'Triggered';

/** How a triggered operation ends, by the event part. */
const ENDS: Readonly<Record<string, OperationOutcome>> = {
  Completed: { status: 'Completed', result: {} },
  PartiallyCompleted: {
    status: 'PartiallyCompleted',
    result: { succeeded: [], failed: [] },
  },
  Failed: { status: 'Failed', error: { code: 'ServiceUnavailable', detail: 'The event was triggered.' } },
  Cancelled: { status: 'Cancelled' },
};

/** Makes an event of an operation happen: to the one with the id if it has not ended, otherwise to a new one. */
export async function triggerOperation(
  db: Database,
  caller: ActingCaller,
  part: string,
  id: string | undefined,
  at: Date,
): Promise<Operation> {
  const outcome = ENDS[part];
  const operation =
    id === undefined
      ? await insertOperation(
          db,
          caller,
          { type: TRIGGERED, input: {}, externalId: `triggered-${at.getTime()}` },
          at,
        )
      : await lockOperation(db, caller, id);
  if (outcome) return finishOperation(db, operation, outcome, at);
  if (id !== undefined) await reportOperation(db, operation, part, at);
  return operation;
}

async function lockOperation(db: Database, caller: ActingCaller, id: string): Promise<Operation> {
  const operation = await db
    .selectFrom('operations')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', caller.accountId)
    .forUpdate()
    .executeTakeFirst();
  if (!operation) throw notFound('operation', id);
  if (operation.status !== 'Pending')
    throw invalid('resourceId', `names an operation that is ${operation.status}`);
  return operation;
}
