import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../../platform/test/fixtures/postgres.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { Fleet } from './fleet.ts';

const postgresUrl = inject('postgresUrl');

const LIMIT = 3_000;
/** A small part of a limit. */
const LOADED_MS = 300;

async function startUnderLoad() {
  const url = await createDatabase(postgresUrl ?? '');
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const fleet = new Fleet(uniquePrefix(), LIMIT);
  onTestFinished(() => fleet.close());
  const settings = { kind: 'redis', url: server.url, deadlineMs: 5_000 } as const;
  const first = fleet.start(settings, url);
  const second = fleet.start(settings, url);
  for (const store of [first, second]) await fleet.counting(store);
  for (const store of [first, second]) fleet.load(store);
  await pause(LOADED_MS);
  const redis = new Redis(server.port, { lazyConnect: true }).on('error', () => {});
  onTestFinished(() => redis.disconnect());
  return { fleet, server, redis, settings, url, first, second };
}

type Started = Awaited<ReturnType<typeof startUnderLoad>>;

const LOSSES: readonly [string, (started: Started) => Promise<void>][] = [
  ['emptied', async ({ redis }) => void (await redis.flushall())],
  [
    'emptied twice',
    async ({ redis }) => {
      await redis.flushall();
      await pause(30);
      await redis.flushall();
    },
  ],
  [
    'killed, and empty when it is back',
    async ({ server }) => {
      await server.kill();
      await server.start();
    },
  ],
  [
    'replaced by an earlier snapshot of its data',
    async ({ server, redis }) => {
      await redis.save();
      await pause(LOADED_MS);
      await server.kill();
      await server.start();
    },
  ],
];

describe.skipIf(postgresUrl === undefined)('a Redis that is', () => {
  test.each(LOSSES)('%s under load forgets no point, and admits none above a limit', async (_, lose) => {
    const started = await startUnderLoad();
    const { fleet, first, second } = started;
    await lose(started);
    const lostMs = performance.now();
    await Promise.all([fleet.counting(first), fleet.counting(second)]);
    const seconds = (performance.now() - lostMs) / 1_000;
    expect(seconds).toBeLessThan(5);
    await pause(LOADED_MS);
    await fleet.endLoad();
    expect(await fleet.exhaust(first)).toEqual({ over: 0, forgotten: 0 });
    expect(fleet.recoveries.length).toBeGreaterThan(1);
  });
});
