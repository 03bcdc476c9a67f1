/** While a recovery goes on, the buckets of the owners who ask are put back before the others. */
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../../platform/test/fixtures/postgres.ts';
import type { RemoteStoreSettings } from '../../../src/store/redis/connection/redis-options.ts';
import type { Store } from '../../../src/store/store.ts';
import { startRedisCluster } from '../../fixtures/redis-cluster.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { Fleet, OWNERS } from './fleet.ts';

const postgresUrl = inject('postgresUrl');

const LIMIT = 100;
const CHARGED = 30;
const deadlineMs = 5_000;
const GATE = 51;

function clientOf(port: number): Redis {
  const client = new Redis(port);
  onTestFinished(() => client.disconnect());
  return client;
}

/** Two replicas whose owners have been charged, except the first one, and whose counts are written. */
async function startFleet(settings: RemoteStoreSettings) {
  const url = await createDatabase(postgresUrl ?? '');
  const fleet = new Fleet(uniquePrefix(), LIMIT);
  onTestFinished(() => fleet.close());
  // Of two that start together, the second may have everything put back again, and would then wait at the gate.
  const first = fleet.start(settings, url);
  await fleet.counting(first);
  const stores = [first, fleet.start(settings, url)] as const;
  await fleet.counting(stores[1]);
  const owners = Array.from({ length: OWNERS - 1 }, (_, owner) => owner + 1);
  for (const owner of owners) {
    while ((await fleet.charge(stores[0], owner, CHARGED)) !== 'admitted') await pause(5);
  }
  const database = new pg.Client({ connectionString: url });
  await database.connect();
  onTestFinished(() => database.end());
  const rows = async () => (await database.query('select from weir_journal_counts')).rowCount;
  await expect.poll(rows).toBe(2 * OWNERS);
  await expect.poll(() => isRecovering(fleet)).toBe(false);
  return { fleet, stores, database };
}

type Started = Awaited<ReturnType<typeof startFleet>>;

/** No recovery reads what the last owner has, unless it asks for it, before the gate is opened. What is charged meanwhile is written later. */
async function closeGate({ fleet, database }: Started) {
  const last = fleet.bucketsOf(OWNERS - 1)[0]?.key;
  await database.query(`
    select pg_advisory_lock(${GATE});
    create function may_read(key text) returns boolean language plpgsql as $$ begin
      if key = '${last}' then perform pg_advisory_xact_lock_shared(${GATE}); end if;
      return true;
    end $$;
    begin;
    alter table weir_journal_counts rename to counts_behind_the_gate;
    create view weir_journal_counts as select * from counts_behind_the_gate where may_read(key);
    commit`);
  return async () => {
    await database.query(`select pg_advisory_unlock(${GATE})`);
    await database.query(
      'begin; drop view weir_journal_counts; alter table counts_behind_the_gate rename to weir_journal_counts; commit',
    );
  };
}

/** Charges an owner until it counts. */
async function untilCounting(fleet: Fleet, store: Store, owner: number): Promise<void> {
  await expect.poll(() => fleet.charge(store, owner)).toBe('admitted');
}

/** Charges an owner until nothing fits, and returns what it was admitted in all. */
async function admittedInAll(fleet: Fleet, store: Store, owner: number): Promise<number> {
  for (const cost of [10, 1]) while ((await fleet.charge(store, owner, cost)) === 'admitted');
  return fleet.admittedTo(owner);
}

/** Charges 5 points when the owner counts. */
async function chargedTo(store: Store, fleet: Fleet, owner: number) {
  await untilCounting(fleet, store, owner);
  const decision = await store.charge({ buckets: fleet.bucketsOf(owner), cost: 5, operation: 'listPayees' });
  if (decision.outcome !== 'admitted') throw new Error(decision.outcome);
  fleet.addAdmitted([0, 0, 0, 0, 1]);
  return decision;
}

const isRecovering = ({ replicas }: Fleet) => replicas.some(({ journal }) => journal.isRecovering());

describe.skipIf(postgresUrl === undefined)('while counts are put back,', () => {
  test('the owners who ask count before the others, at every replica', async () => {
    const server = await startRedisServer();
    onTestFinished(() => server.stop());
    const redis = clientOf(server.port);
    const started = await startFleet({ kind: 'redis', url: server.url, deadlineMs });
    const { fleet, stores } = started;
    const openGate = await closeGate(started);
    await redis.flushall();
    for (const [index, store] of stores.entries()) {
      await untilCounting(fleet, store, index + 1);
      expect(await admittedInAll(fleet, store, index + 1)).toBe(LIMIT);
    }
    const { buckets, chargedAtUs } = await chargedTo(stores[1], fleet, 4);
    const charge = { buckets: fleet.bucketsOf(4), cost: 5, operation: 'listPayees' };
    const settlement = { charge, chargedAtUs, id: 'less', cost: 1, refundsRequests: false };
    expect(await stores[1].settle(settlement)).toMatchObject({
      outcome: 'settled',
      buckets: buckets.map(({ remaining }) => ({ remaining: remaining + 4 })),
    });
    // There is nothing to be put back.
    await untilCounting(fleet, stores[0], OWNERS);
    expect(isRecovering(fleet)).toBe(true);
    expect(await redis.exists(...fleet.bucketsOf(3).map(({ key }) => key))).toBe(0);
    const beside = await redis.keys('*:journal:*');
    expect(beside).toHaveLength(1);
    expect(await redis.ttl(beside[0] ?? '')).toBeGreaterThan(0);

    await openGate();
    await expect.poll(() => isRecovering(fleet)).toBe(false);
    expect(await fleet.exhaust(stores[1])).toEqual({ over: 0, forgotten: 0 });
    expect(await redis.keys('*:journal:*')).toEqual([]);
  });

  test('and Redis is emptied again, an owner that counted before counts no longer', async () => {
    const server = await startRedisServer();
    onTestFinished(() => server.stop());
    const redis = clientOf(server.port);
    const started = await startFleet({ kind: 'redis', url: server.url, deadlineMs });
    const { fleet, stores } = started;
    const openGate = await closeGate(started);
    await redis.flushall();
    await untilCounting(fleet, stores[0], 1);
    await redis.flushall();
    for (const store of stores) expect(await fleet.charge(store, 1)).toBe('recovering');
    await openGate();
    expect(await fleet.exhaust(stores[0])).toEqual({ over: 0, forgotten: 0 });
  });

  test('a user of Redis who may not use sets has all owners wait for the end', async () => {
    const server = await startRedisServer();
    onTestFinished(() => server.stop());
    const redis = clientOf(server.port);
    await redis.acl('SETUSER', 'weir', 'on', '>secret', '~*', '&*', '+@all', '-sadd', '-sismember');
    const settings = {
      kind: 'redis',
      url: server.url,
      username: 'weir',
      password: 'secret',
      deadlineMs,
    } as const;
    const started = await startFleet(settings);
    const { fleet, stores } = started;
    const openGate = await closeGate(started);
    await redis.flushall();
    await expect.poll(() => fleet.charge(stores[0], 1)).toBe('recovering');
    await expect.poll(() => redis.exists(...fleet.bucketsOf(1).map(({ key }) => key))).toBe(2);
    expect(await fleet.charge(stores[0], 1)).toBe('recovering');
    await openGate();
    expect(await fleet.exhaust(stores[0])).toEqual({ over: 0, forgotten: 0 });
  });

  test('the owners of a Cluster who ask count before the others', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const started = await startFleet({ kind: 'cluster', nodes: cluster.urls, deadlineMs });
    const { fleet, stores } = started;
    const openGate = await closeGate(started);
    await Promise.all(cluster.clients.map((client) => client.flushall()));
    for (let owner = 1; owner < OWNERS - 1; owner++) {
      await untilCounting(fleet, stores[owner % 2 === 0 ? 0 : 1], owner);
      expect(await admittedInAll(fleet, stores[0], owner)).toBe(LIMIT);
    }
    expect(isRecovering(fleet)).toBe(true);
    await openGate();
    expect(await fleet.exhaust(stores[0])).toEqual({ over: 0, forgotten: 0 });
  });
});
