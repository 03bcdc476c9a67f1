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
  { type, input, externalId = null }: NewOperation,
  now: Date,
): Promise<Record<string, unknown>> {
  const operation: Omit<Operation, 'sequence'> = {
    id: newId('Operation'),
    type,
    account_id: caller.accountId,
    principal_id: caller.principalId,
    person_id: caller.personId ?? null,
    external_id: externalId,
    status: 'Pending',
    input,
    result: null,
    error: null,
    events: { createdAt: now.toISOString() },
    created_at: now,
    updated_at: now,
  };
  const row = { ...operation, input: JSON.stringify(input), events: JSON.stringify(operation.events) };
  await db
    .insertInto('operations')
    .values({ ...row, result: null, error: null })
    .execute();
  await report(db, operation, 'Created', now);
  await jobs.enqueue(db, OPERATION_QUEUE, [{ data: { operationId: operation.id } }]);
  return operationBody(operation);
}

/** Ends an operation and writes its event, in `db`'s transaction. */
export async function finishOperation(
  db: Database,
  operation: Operation,
  outcome: OperationOutcome,
  now: Date,
): Promise<void> {
  const part = outcome.status;
  const events = { ...operation.events, [timestampName(part)]: now.toISOString() };
  await db
    .updateTable('operations')
    .set({
      status: part,
      result: outcome.result ? JSON.stringify(outcome.result) : null,
      error: outcome.error ? JSON.stringify(outcome.error) : null,
      events: JSON.stringify(events),
      updated_at: now,
    })
    .where('id', '=', operation.id)
    .execute();
  await report(db, { ...operation, status: part }, part, now);
}

function report(db: Database, operation: Omit<Operation, 'sequence'>, part: string, at: Date): Promise<void> {
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
