import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../../platform/test/fixtures/postgres.ts';
import type { RemoteStoreSettings } from '../../../src/store/redis/connection/redis-options.ts';
import type { Store } from '../../../src/store/store.ts';
import { startRedisCluster } from '../../fixtures/redis-cluster.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { Fleet, OWNERS, takeDatabase } from './fleet.ts';

const postgresUrl = inject('postgresUrl');

/** More than is admitted before each owner charges until nothing fits. */
const LIMIT = 100_000;
const deadlineMs = 5_000;

/** Two replicas that count, and a database. The second one has a PostgreSQL user of its own, if it is named. */
async function startFleet(settings: RemoteStoreSettings, secondUser?: string) {
  const url = await createDatabase(postgresUrl ?? '');
  const fleet = new Fleet(uniquePrefix(), LIMIT);
  onTestFinished(() => fleet.close());
  const secondUrl = new URL(url);
  if (secondUser !== undefined) secondUrl.username = secondUser;
  const start = async (journalUrl: string) => {
    const store = fleet.start(settings, journalUrl);
    await fleet.counting(store);
    fleet.load(store);
    return store;
  };
  // The first one creates the tables, which belong to its user.
  const [first, second] = [await start(url), await start(secondUrl.href)];
  return { fleet, url, first, second };
}

async function startFleetOnRedis(secondUser?: string) {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const redis = new Redis(server.port);
  onTestFinished(() => redis.disconnect());
  return { redis, ...(await startFleet({ kind: 'redis', url: server.url, deadlineMs }, secondUser)) };
}

/** Resolves when a replica counts, whatever it puts back. */
async function goingOn(fleet: Fleet, store: Store): Promise<void> {
  await expect.poll(() => fleet.charge(store, 0)).toBe('admitted');
}

/** Resolves when both replicas have counted further points of an owner, and nothing else has happened. */
async function countingMore(fleet: Fleet): Promise<void> {
  fleet.outcomes.clear();
  const before = fleet.admittedTo(0);
  await expect.poll(() => fleet.admittedTo(0)).toBeGreaterThan(before + 50);
  expect([...fleet.outcomes.keys()]).toEqual(['admitted']);
}

/** Points of the month that were admitted, and that Redis does not have. In a Cluster, one of the clients can read a key. */
async function forgottenIn(clients: readonly Redis[], fleet: Fleet): Promise<number> {
  const owners = Array.from({ length: OWNERS }, async (_, owner) => {
    const key = fleet.bucketsOf(owner)[1]?.key ?? '';
    const value = await Promise.any(clients.map((client) => client.getBuffer(key)));
    // lua/README.md: seven bytes.
    return (fleet.admitted.get(key) ?? 0) - (value?.readUIntBE(1, 6) ?? 0);
  });
  return (await Promise.all(owners)).reduce((sum, points) => sum + points, 0);
}

/** The points of each bucket in the journal. */
async function pointsIn(url: string): Promise<ReadonlyMap<string, number>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(
    'select key, sum(points)::int as points from weir_journal_counts group by key',
  );
  await client.end();
  return new Map(rows.map(({ key, points }) => [key, points]));
}

/** Redis and the journal have each point once, after everything was put back. A replica that was not waited for has that done once more. */
async function expectEachOnce(clients: readonly Redis[], fleet: Fleet, url: string): Promise<void> {
  await fleet.endLoad();
  await expect.poll(() => forgottenIn(clients, fleet)).toBe(0);
  await expect
    .poll(() => fleet.replicas.map(({ journal }) => journal.isRecovering()))
    .toEqual(fleet.replicas.map(() => false));
  const store = fleet.replicas.at(-1)?.store as Store;
  expect(await fleet.exhaust(store)).toEqual({ over: 0, forgotten: 0 });
  for (const { journal } of fleet.replicas) await expect.poll(() => journal.lagSeconds()).toBe(0);
  expect(await pointsIn(url)).toEqual(fleet.admitted);
}

describe.skipIf(postgresUrl === undefined)('while PostgreSQL is away, durable limits count on', () => {
  test('after five seconds in a Redis that is emptied, and each point is there once afterwards', async () => {
    const { redis, fleet, url, first, second } = await startFleetOnRedis();
    const database = await takeDatabase(postgresUrl ?? '', url);
    await expect.poll(() => fleet.failures.length).toBeGreaterThan(0);
    await redis.flushall();
    expect(await fleet.charge(first, 0)).toBe('recovering');
    await Promise.all([goingOn(fleet, first), goingOn(fleet, second)]);
    await countingMore(fleet);
    // What was counted since is lost as well.
    await redis.flushall();
    await countingMore(fleet);
    expect(fleet.replicas.map(({ journal }) => journal.isRecovering())).toEqual([true, true]);
    await database.giveBack();
    await Promise.all([fleet.counting(first), fleet.counting(second)]);
    await expectEachOnce([redis], fleet, url);
  });

  test('in a Cluster of which one master is emptied', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const settings = { kind: 'cluster', nodes: cluster.urls, deadlineMs } as const;
    const { fleet, url, first, second } = await startFleet(settings);
    const database = await takeDatabase(postgresUrl ?? '', url);
    await expect.poll(() => fleet.failures.length).toBeGreaterThan(0);
    await cluster.clients[1]?.flushall();
    const outcomes = (store: Store) =>
      Promise.all(Array.from({ length: OWNERS }, (_, owner) => fleet.charge(store, owner)));
    expect(new Set(await outcomes(first))).toEqual(new Set(['admitted', 'recovering']));
    for (const store of [first, second])
      await expect.poll(async () => [...new Set(await outcomes(store))]).toEqual(['admitted']);
    await countingMore(fleet);
    await database.giveBack();
    await Promise.all([fleet.counting(first), fleet.counting(second)]);
    await expectEachOnce(cluster.clients, fleet, url);
  });

  test('at a replica that reaches it later than the others, whose counts are put back then', async () => {
    const user = `late_${randomUUID().replaceAll('-', '')}`;
    const server = new pg.Client({ connectionString: postgresUrl });
    await server.connect();
    await server.query(`create role ${user} superuser login`);
    onTestFinished(() => server.query(`drop role ${user}`).then(() => server.end()));
    const { redis, fleet, url, first, second } = await startFleetOnRedis(user);
    await server.query(`alter role ${user} nologin`);
    const database = await takeDatabase(postgresUrl ?? '', url);
    await redis.flushall();
    await Promise.all([goingOn(fleet, first), goingOn(fleet, second)]);
    await countingMore(fleet);
    await database.giveBack();
    await fleet.counting(first);
    await fleet.endLoad();
    expect(await forgottenIn([redis], fleet)).toBeGreaterThan(0);
    await server.query(`alter role ${user} login`);
    await expectEachOnce([redis], fleet, url);
  });
});
