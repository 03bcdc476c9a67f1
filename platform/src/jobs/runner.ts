import type PgBoss from 'pg-boss';
import { waitBriefly } from '../program/grace.ts';
import { type Polling, startPolling } from './polling.ts';

export interface Job {
  readonly id: string;
  readonly data: Readonly<Record<string, string>>;
  /** 0 for the first run. */
  readonly retryCount: number;
  readonly retryLimit: number;
}

/** Runs a job. If it throws, the job is run again after a delay, as its queue is set. */
export type JobHandler = (job: Job) => Promise<void>;

/** How often an idle queue checks for scheduled jobs, and for jobs of other processes. */
const POLL_MS = 500;

/** Runs the jobs of a queue, up to `concurrency` at once. `stop` waits briefly for runs under way; the next process repeats the others. */
export function runQueue(
  boss: PgBoss,
  queue: { readonly name: string; readonly concurrency: number },
  handle: JobHandler,
  onError: (error: Error) => void,
): Polling {
  const underWay = new Set<Promise<void>>();
  // Reported together, before the next fetch. If the report fails, the jobs run again and find their work done.
  let done: string[] = [];
  let isStopped = false;

  const run = async (job: PgBoss.JobWithMetadata<Job['data']>) => {
    try {
      await handle(job);
      done.push(job.id);
    } catch (error) {
      await boss.fail(queue.name, job.id, { message: String(error) });
    }
  };
  const start = (job: PgBoss.JobWithMetadata<Job['data']>) => {
    const running: Promise<void> = run(job)
      .catch((error: Error) => {
        if (!isStopped) onError(error);
      })
      .finally(() => {
        underWay.delete(running);
        polling.wake();
      });
    underWay.add(running);
  };
  const report = async () => {
    const ids = done;
    done = [];
    if (ids.length > 0) await boss.complete(queue.name, ids).catch(onError);
  };
  const look = async () => {
    const batchSize = queue.concurrency - underWay.size;
    await report();
    if (batchSize === 0) return false;
    const options = { batchSize, includeMetadata: true, priority: false } as const;
    const jobs = await boss.fetch<Job['data']>(queue.name, options);
    jobs.forEach(start);
    return jobs.length === batchSize;
  };
  const polling = startPolling(POLL_MS, look, onError);
  return {
    wake: polling.wake,
    async stop() {
      isStopped = true;
      await waitBriefly(polling.stop().then(() => Promise.all(underWay)));
      await waitBriefly(report());
    },
  };
}
