import PgBoss from 'pg-boss';
import { executorOn, type SqlExecutor } from '../database/connect.ts';
import type { Database } from '../database/schema.ts';

export interface Job {
  readonly id: string;
  readonly data: Readonly<Record<string, string>>;
  /** 0 at the first run. */
  readonly retryCount: number;
  readonly retryLimit: number;
}

export interface QueueSettings {
  readonly name: string;
  readonly concurrency: number;
  readonly retryLimit: number;
  readonly retryBaseSeconds: number;
  /** A run that has not ended after this long counts as dead, its process killed, and is run again. */
  readonly expireInSeconds: number;
}

/** Ends: done. Throws: run again later, after an exponential delay with jitter. */
export type JobHandler = (job: Job) => Promise<void>;

/** Jobs that outlive a crash: each runs at least once, and belongs to the transaction that enqueued it. */
export interface Jobs {
  /** Begins to run what is enqueued, now or by an earlier process, each queue by its handler. */
  run(handlers: Readonly<Record<string, JobHandler>>): void;
  /** Written with `db`'s transaction; `wake` after the commit makes it run at once. */
  enqueue(db: Database, queue: string, jobs: readonly NewJob[]): Promise<void>;
  wake(): void;
  /** Waits for the runs under way. */
  stop(): Promise<void>;
}

export interface NewJob {
  readonly data: Readonly<Record<string, string>>;
  readonly startAfter?: Date;
}

/** How often an idle queue looks for jobs whose time has come, and for those of other processes. */
const POLL_MS = 500;
const MAINTENANCE_SECONDS = 5;

/** Opens the queues with pg-boss, over whatever PostgreSQL `executor` reaches. */
export async function openJobs(
  executor: SqlExecutor,
  queues: readonly QueueSettings[],
  onError: (error: Error) => void,
): Promise<Jobs> {
  const boss = new PgBoss({ db: executor, schedule: false, maintenanceIntervalSeconds: MAINTENANCE_SECONDS });
  boss.on('error', onError);
  await boss.start();
  for (const { name } of queues) await boss.createQueue(name);
  const runners: Runner[] = [];
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
      const { retryLimit, retryBaseSeconds, expireInSeconds } = settings;
      const retry = { retryLimit, retryDelay: retryBaseSeconds, retryBackoff: true, expireInSeconds };
      await boss.insert(
        jobs.map((job) => ({ name, ...job, ...retry })),
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

interface Runner {
  wake(): void;
  stop(): Promise<void>;
}

function runQueue(
  boss: PgBoss,
  queue: QueueSettings,
  handle: JobHandler,
  onError: (error: Error) => void,
): Runner {
  const underWay = new Set<Promise<void>>();
  let isStopped = false;
  let wake: () => void = () => undefined;

  const run = async (job: PgBoss.JobWithMetadata<Job['data']>) => {
    try {
      await handle(job);
      await boss.complete(queue.name, job.id);
    } catch (error) {
      await boss.fail(queue.name, job.id, { message: String(error) });
    }
  };
  const start = (job: PgBoss.JobWithMetadata<Job['data']>) => {
    const running: Promise<void> = run(job)
      .catch(onError)
      .finally(() => {
        underWay.delete(running);
        wake();
      });
    underWay.add(running);
  };
  const idle = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, POLL_MS);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const loop = async () => {
    while (!isStopped) {
      const batchSize = queue.concurrency - underWay.size;
      const woken = idle();
      const jobs =
        batchSize > 0
          ? await boss.fetch<Job['data']>(queue.name, { batchSize, includeMetadata: true, priority: false })
          : [];
      jobs.forEach(start);
      if (jobs.length < batchSize || batchSize === 0) await woken;
      else wake();
    }
    await Promise.all(underWay);
  };
  const ended = loop().catch(onError);
  return {
    wake: () => wake(),
    async stop() {
      isStopped = true;
      wake();
      await ended;
    },
  };
}
