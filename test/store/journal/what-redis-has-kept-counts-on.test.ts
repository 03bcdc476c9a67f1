import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../../platform/test/fixtures/postgres.ts';
import { startRedisCluster } from '../../fixtures/redis-cluster.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { Fleet, OWNERS } from './fleet.ts';

const postgresUrl = inject('postgresUrl');

const LIMIT = 3_000;
const deadlineMs = 5_000;

describe.skipIf(postgresUrl === undefined)('what Redis has kept counts on', () => {
  test('in a Cluster, while the counts of one master are missing', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const url = await createDatabase(postgresUrl ?? '');
    const fleet = new Fleet(uniquePrefix(), LIMIT);
    const store = fleet.start({ kind: 'cluster', nodes: cluster.urls, deadlineMs }, url);
    onTestFinished(() => fleet.close());
    await fleet.counting(store);
    const isLost = await Promise.all(
      Array.from({ length: OWNERS }, (_, owner) =>
        cluster.clients[1]?.exists(fleet.bucketsOf(owner)[0]?.key ?? '').then(
          () => true,
          () => false,
        ),
      ),
    );
    const charges = () =>
      Promise.all(isLost.map(async (lost, owner) => [lost, await fleet.charge(store, owner)] as const));
    await expect
      .poll(async () => (await charges()).every(([, outcome]) => outcome === 'admitted'))
      .toBe(true);

    // No recovery gets further than its question.
    const database = new pg.Client({ connectionString: url });
    await database.connect();
    await database.query('begin; lock table weir_journal_recovery in access exclusive mode');
    await cluster.clients[1]?.flushall();
    for (let round = 0; round < 20; round++) {
      const outcomes = await charges();
      expect(outcomes.filter(([lost, outcome]) => outcome !== (lost ? 'recovering' : 'admitted'))).toEqual(
        [],
      );
    }
    await database.query('commit');
    await database.end();
    await expect
      .poll(async () => (await charges()).every(([, outcome]) => outcome === 'admitted'))
      .toBe(true);
    expect(isLost).toContain(true);
    expect(isLost).toContain(false);
    expect(await fleet.exhaust(store)).toEqual({ over: 0, forgotten: 0 });
  });

  test('when it gets its first replica: the id changes, and counts are put back that nobody has lost', async () => {
    const server = await startRedisServer();
    onTestFinished(() => server.stop());
    const url = await createDatabase(postgresUrl ?? '');
    const fleet = new Fleet(uniquePrefix(), LIMIT);
    const settings = { kind: 'redis', url: server.url, deadlineMs } as const;
    const stores = [fleet.start(settings, url)];
    onTestFinished(() => fleet.close());
    await fleet.counting(stores[0] as never);
    fleet.load(stores[0] as never);
    await expect.poll(() => fleet.admittedTo(0)).toBeGreaterThan(50);

    const client = new Redis(server.port);
    onTestFinished(() => client.disconnect());
    const replication = async () => {
      const info = await client.info('replication');
      return ['master_replid', 'master_replid2'].map((name) => new RegExp(`${name}:(\\w+)`).exec(info)?.[1]);
    };
    const [before] = await replication();
    const replica = await startRedisServer({ args: ['--replicaof', '127.0.0.1', `${server.port}`] });
    onTestFinished(() => replica.stop());
    await expect.poll(() => client.info('replication')).toContain('state=online');
    const [after, second] = await replication();
    expect(after).not.toBe(before);
    // Redis does not say that it had another one.
    expect(second).toMatch(/^0+$/);

    const recoveries = fleet.recoveries.length;
    stores.push(fleet.start(settings, url));
    await fleet.counting(stores[1] as never);
    fleet.load(stores[1] as never);
    await expect.poll(() => fleet.recoveries.length).toBeGreaterThan(recoveries);
    await fleet.endLoad();
    // The first replica sees a server with another id, and has counts put back once more.
    for (const store of stores)
      await expect.poll(() => fleet.exhaust(store)).toEqual({ over: 0, forgotten: 0 });
    expect(new Set(fleet.recoveries.slice(recoveries).map(({ points }) => points))).toEqual(new Set([0]));
  });
});
