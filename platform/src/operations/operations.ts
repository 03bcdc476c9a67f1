import { newId } from '../catalog/catalog.ts';
import type { Database } from '../database/schema.ts';
import { writeOccurrence } from '../events/outbox.ts';
import { timestampName } from '../events/transitions.ts';
import type { ActingCaller } from '../http/call.ts';
import type { Jobs } from '../jobs/queue.ts';
import { type Operation, type OperationOutcome, operationBody } from './operation.ts';

export const OPERATION_QUEUE = 'operations';

export interface NewOperation {
  readonly type: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Id of the single resource that it acts on. */
  readonly externalId?: string | null;
}

/** Writes a new operation, its event and its job in `db`'s transaction. Returns the body of the 202. */
export async function acceptOperation(
  db: Database,
  jobs: Jobs,
  caller: ActingCaller,
  work: NewOperation,
  now: Date,
): Promise<Record<string, unknown>> {
  const operation = await insertOperation(db, caller, work, now);
  await jobs.enqueue(db, OPERATION_QUEUE, [{ data: { operationId: operation.id } }]);
  return operationBody(operation);
}

/** Writes a new operation and its event in `db`'s transaction. */
export async function insertOperation(
  db: Database,
  caller: ActingCaller,
  { type, input, externalId = null }: NewOperation,
  now: Date,
): Promise<Operation> {
  const operation = await db
    .insertInto('operations')
    .values({
      id: newId('Operation'),
      type,
      status: 'Pending',
      external_id: externalId,
      result: null,
      error: null,
      account_id: caller.accountId,
      principal_id: caller.principalId,
      person_id: caller.personId ?? null,
      input: JSON.stringify(input),
      events: JSON.stringify({ createdAt: now.toISOString() }),
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await reportOperation(db, operation, 'Created', now);
  return operation;
}

/** Ends an operation and writes its event, in `db`'s transaction. */
export async function finishOperation(
  db: Database,
  operation: Operation,
  outcome: OperationOutcome,
  now: Date,
): Promise<Operation> {
  const part = outcome.status;
  const events = { ...operation.events, [timestampName(part)]: now.toISOString() };
  const finished = await db
    .updateTable('operations')
    .set({
      status: part,
      result: outcome.result ? JSON.stringify(outcome.result) : null,
      error: outcome.error ? JSON.stringify(outcome.error) : null,
      events: JSON.stringify(events),
      updated_at: now,
    })
    .where('id', '=', operation.id)
    .returningAll()
    .executeTakeFirstOrThrow();
  await reportOperation(db, finished, part, now);
  return finished;
}

/** Writes the event of an operation. */
export function reportOperation(db: Database, operation: Operation, part: string, at: Date): Promise<void> {
  return writeOccurrence(db, {
    type: `Operation.${part}`,
    at,
    data: {
      id: operation.id,
      status: operation.status,
      ...(operation.external_id !== null && { externalId: operation.external_id }),
    },
    accountId: operation.account_id,
    recipients: [
      { scope: 'Account', id: operation.account_id },
      ...(operation.person_id === null ? [] : [{ scope: 'Person' as const, id: operation.person_id }]),
    ],
  });
}
