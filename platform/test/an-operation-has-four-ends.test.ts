import { beforeEach, describe, expect, test } from 'vitest';
import { PlatformError } from '../src/http/problems.ts';
import type { Jobs } from '../src/jobs/queue.ts';
import { acceptOperation } from '../src/operations/operations.ts';
import { type OperationWork, runOperation } from '../src/operations/run.ts';
import { databases, useDatabase } from './fixtures/databases.ts';

const CALLER = {
  accountId: 'acct_1',
  organizationId: undefined,
  principalId: 'person_1',
  personId: 'person_1',
};
const BEGIN = new Date('2026-03-01T12:00:00.000Z');
/** The job is run by the test itself. */
const NO_JOBS: Jobs = {
  run: () => undefined,
  enqueue: async () => undefined,
  wake: () => undefined,
  stop: async () => undefined,
};

describe.each(databases)('on $name', ({ open }) => {
  const database = useDatabase(open);
  let operationId: string;
  beforeEach(async () => {
    const body = await acceptOperation(database.db, NO_JOBS, CALLER, { type: 'Test', input: {} }, BEGIN);
    operationId = String(body.id);
  });

  const run = (work: OperationWork, hoursLater = 0, retryCount = 0) => {
    const job = { id: 'job', data: { operationId }, retryCount, retryLimit: 3 };
    return runOperation(
      database.db,
      { Test: work },
      () => new Date(BEGIN.getTime() + hoursLater * 3_600_000),
      job,
    );
  };
  const read = async () => {
    const { db } = database;
    const operation = await db
      .selectFrom('operations')
      .selectAll()
      .where('id', '=', operationId)
      .executeTakeFirstOrThrow();
    const events = await db
      .selectFrom('events')
      .select(['type', 'scope_type'])
      .orderBy('sequence', 'desc')
      .limit(2)
      .execute();
    return { status: operation.status, error: operation.error, reported: events.map(({ type }) => type) };
  };

  test('if its work is refused, it fails with the error, and its changes are rolled back', async () => {
    await run(async (db) => {
      await db.insertInto('secrets').values({ name: operationId, value: 'x' }).execute();
      throw new PlatformError(422, 'ValidationError', 'no');
    });
    expect(await read()).toEqual({
      status: 'Failed',
      error: { code: 'ValidationError', detail: 'no' },
      reported: ['Operation.Failed', 'Operation.Failed'],
    });
    const left = await database.db
      .selectFrom('secrets')
      .selectAll()
      .where('name', '=', operationId)
      .execute();
    expect(left).toEqual([]);
  });

  test('a fault is retried, and the operation fails after the last retry without revealing details', async () => {
    const broken: OperationWork = async () => {
      throw new Error('password is hunter2');
    };
    await expect(run(broken)).rejects.toThrow('hunter2');
    expect((await read()).status).toBe('Pending');
    await run(broken, 0, 3);
    expect(await read()).toMatchObject({
      status: 'Failed',
      error: { code: 'ServiceUnavailable', detail: 'The service has a problem.' },
    });
  });

  test('an operation that could not start for a day is cancelled and never run', async () => {
    let isDone = false;
    await run(async () => {
      isDone = true;
      return { status: 'Completed' };
    }, 25);
    expect([(await read()).status, (await read()).reported[0], isDone]).toEqual([
      'Cancelled',
      'Operation.Cancelled',
      false,
    ]);
  });

  test('one that has ended is not run again', async () => {
    let runs = 0;
    const work: OperationWork = async () => {
      runs++;
      return { status: 'PartiallyCompleted', result: { succeeded: ['a'] } };
    };
    await run(work);
    await run(work);
    expect([runs, (await read()).status]).toEqual([1, 'PartiallyCompleted']);
  });
});
