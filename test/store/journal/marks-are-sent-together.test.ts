import type { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { followStore, openStore } from '../../../src/store/open-store.ts';
import { startRedisCluster } from '../../fixtures/redis-cluster.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';

const SLOTS = 16_384;

/** How often the servers have run a script, and how often they have read from their clients. */
async function workOf(servers: readonly Redis[]): Promise<{ scripts: number; reads: number }> {
  const sum = { scripts: 0, reads: 0 };
  for (const server of servers) {
    const info = await server.info('everything');
    for (const [, calls] of info.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm))
      sum.scripts += Number(calls);
    sum.reads += Number(/total_reads_processed:(\d+)/.exec(info)?.[1]);
  }
  return sum;
}

test('the marks of a Cluster are sent together, and not all of them are read when one is wrong', async () => {
  const { urls, clients, stop } = await startRedisCluster();
  onTestFinished(stop);
  const settings = { kind: 'cluster', nodes: urls, deadlineMs: 60_000 } as const;
  const followed = followStore(settings, uniquePrefix(), { missing() {}, arrived() {}, left() {} });
  if (followed === undefined) throw new Error('a Cluster has marks');
  const { marks, counts } = followed;
  const store = openStore(settings, undefined, marks);
  onTestFinished(() => store.close());
  const during = async (work: () => Promise<unknown>) => {
    const before = await workOf(clients);
    const result = await work();
    const after = await workOf(clients);
    return { result, scripts: after.scripts - before.scripts, reads: after.reads - before.reads };
  };
  // On a busy machine, one of the servers may not be connected yet, and then its marks are not read.
  const readWhole = () =>
    expect
      .poll(
        async () => {
          const { result, scripts } = await during(() => counts.isComplete());
          return [result, scripts];
        },
        { timeout: 10_000 },
      )
      .toEqual([true, SLOTS]);
  let answered = 0;
  const onAnswered = () => {
    answered += 1;
  };
  const recovering = await during(() => counts.recover('all', false, async () => {}, onAnswered));
  // Two calls for each mark. One write is read in pieces of at most 16 kB.
  expect([recovering.result, recovering.scripts]).toEqual([true, 2 * SLOTS]);
  expect(recovering.reads).toBeLessThan(SLOTS / 10);
  // Both passes report after each part, so that a recovery stays in touch with PostgreSQL even when Redis is slow to answer.
  expect(answered).toBeGreaterThanOrEqual(100);
  await readWhole();

  await clients[2]?.flushall();
  expect(await counts.isComplete()).toBe(false);
  const again = await during(() => counts.isComplete());
  expect(again.result).toBe(false);
  expect(again.scripts).toBeLessThan(SLOTS / 30);

  // Reading stopped at the first wrong marks. Once these are right again, the others are read as well.
  const restoring = await during(() => counts.recover('rest', false, async () => {}, onAnswered));
  expect(restoring.result).toBe(true);
  await readWhole();
});
