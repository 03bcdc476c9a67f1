import PgBoss from 'pg-boss';
import { executorOn, type SqlExecutor } from '../database/connect.ts';
import type { Database } from '../database/schema.ts';
import type { Polling } from './polling.ts';
import { type JobHandler, runQueue } from './runner.ts';

export interface QueueSettings {
  readonly name: string;
  readonly concurrency: number;
  /** How often a job that fails is run again. Absent: until it succeeds. */
  readonly retryLimit?: number;
  /** The wait before a job is run again. With a limit, it doubles with each failure. */
  readonly retrySeconds: number;
  /** A run that takes longer is assumed dead, and the job is run again. */
  readonly expireInSeconds: number;
}

/** Jobs that survive a crash. Each runs at least once, and exists only if the transaction that enqueued it committed. */
export interface Jobs {
  /** Starts running the jobs of each queue with its handler, including those that earlier processes enqueued. */
  run(handlers: Readonly<Record<string, JobHandler>>): void;
  /** Enqueues jobs in `db`'s transaction. Call `wake` after the commit to run them at once. */
  enqueue(db: Database, queue: string, jobs: readonly NewJob[]): Promise<void>;
  wake(): void;
  /** Waits briefly for runs under way. */
  stop(): Promise<void>;
}

export interface NewJob {
  readonly data: Readonly<Record<string, string>>;
  readonly startAfter?: Date;
}

/** The highest number of the column. */
const ENDLESS = 2 ** 31 - 1;
/** pg-boss archives a job that waits for longer than this. Its default is 14 days after the first run. */
const KEEP_UNTIL = new Date('9999-12-31T00:00:00Z');

/** Opens the queues with pg-boss, which uses the database of `executor`. */
export async function openJobs(
  executor: SqlExecutor,
  queues: readonly QueueSettings[],
  sweepSeconds: number,
  onError: (error: Error) => void,
): Promise<Jobs> {
  const boss = new PgBoss({ db: executor, schedule: false, maintenanceIntervalSeconds: sweepSeconds });
  boss.on('error', onError);
  await boss.start();
  for (const { name } of queues) await boss.createQueue(name);
  const runners: Polling[] = [];
  const settingsOf = new Map(queues.map((queue) => [queue.name, queue]));
  return {
    run(handlers) {
      for (const queue of queues) {
        const handle = handlers[queue.name];
        if (!handle) throw new Error(`Nothing handles the jobs of the queue "${queue.name}".`);
        runners.push(runQueue(boss, queue, handle, onError));
      }
    },
    async enqueue(db, name, jobs) {
      const settings = settingsOf.get(name);
      if (!settings) throw new Error(`There is no queue "${name}".`);
      if (jobs.length === 0) return;
      const { retryLimit, retrySeconds: retryDelay, expireInSeconds } = settings;
      const retry =
        retryLimit === undefined
          ? { retryLimit: ENDLESS, retryBackoff: false, keepUntil: KEEP_UNTIL }
          : { retryLimit, retryBackoff: true };
      await boss.insert(
        jobs.map((job) => ({ name, ...job, ...retry, retryDelay, expireInSeconds })),
        { db: executorOn(db) },
      );
    },
    wake: () => runners.forEach((runner) => void runner.wake()),
    async stop() {
      await Promise.all(runners.map((runner) => runner.stop()));
      await boss.stop({ graceful: false });
    },
  };
}
