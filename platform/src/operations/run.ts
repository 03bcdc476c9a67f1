import type { Database } from '../database/schema.ts';
import { PlatformError } from '../http/problems.ts';
import type { Job } from '../jobs/runner.ts';
import type { Operation, OperationOutcome } from './operation.ts';
import { finishOperation } from './operations.ts';

/** Performs one type of operation in `db`'s transaction. If it throws a PlatformError, the operation fails. */
export type OperationWork = (db: Database, operation: Operation, now: Date) => Promise<OperationOutcome>;

/** An operation that has not started by then is cancelled, so that no money moves a day late. */
const CANCEL_AFTER_MS = 24 * 3600 * 1000;

/**
 * Runs an operation to its end. Its effects, its end and their events are one transaction. A crash before the commit
 * leaves nothing behind; a job that is repeated after the commit finds that the operation has ended.
 */
export async function runOperation(
  db: Database,
  works: Readonly<Record<string, OperationWork>>,
  now: () => Date,
  job: Job,
): Promise<void> {
  const id = job.data.operationId ?? '';
  try {
    await inTransaction(db, id, async (trx, operation) => {
      if (now().getTime() - operation.created_at.getTime() > CANCEL_AFTER_MS) return { status: 'Cancelled' };
      const work = works[operation.type];
      if (!work) throw new Error(`There is no work for operations of type "${operation.type}".`);
      return work(trx, operation, now());
    });
  } catch (error) {
    if (!(error instanceof PlatformError) && job.retryCount < job.retryLimit) throw error;
    const refusal =
      error instanceof PlatformError
        ? error
        : { code: 'ServiceUnavailable', message: 'The service has a problem.' };
    const failed = { status: 'Failed', error: { code: refusal.code, detail: refusal.message } } as const;
    await inTransaction(db, id, async () => failed);
  }

  function inTransaction(
    database: Database,
    operationId: string,
    work: (trx: Database, operation: Operation) => Promise<OperationOutcome>,
  ): Promise<void> {
    return database.transaction().execute(async (trx) => {
      const operation = await trx
        .selectFrom('operations')
        .selectAll()
        .where('id', '=', operationId)
        .where('status', '=', 'Pending')
        .forUpdate()
        .executeTakeFirst();
      if (operation) await finishOperation(trx, operation, await work(trx, operation), now());
    });
  }
}
