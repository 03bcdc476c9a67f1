import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createDatabase, findPostgres, startPostgres } from '../../../platform/test/fixtures/postgres.ts';
import type { RemoteStoreSettings } from '../../../src/store/redis/connection/redis-options.ts';
import { startRedisCluster } from '../../fixtures/redis-cluster.ts';
import { startSentinel } from '../../fixtures/redis-sentinel.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { Fleet, OWNERS, takeDatabase } from './fleet.ts';

const postgresUrl = inject('postgresUrl');

const LIMIT = 3_000;
/** A small part of a limit. */
const LOADED_MS = 300;
const deadlineMs = 5_000;
const REPLICA = fileURLToPath(new URL('replica-process.ts', import.meta.url));

/** Two replicas that count, and a database. */
async function startFleet(settings: RemoteStoreSettings, serverUrl = postgresUrl) {
  const url = await createDatabase(serverUrl ?? '');
  const fleet = new Fleet(uniquePrefix(), LIMIT);
  onTestFinished(() => fleet.close());
  const stores = [fleet.start(settings, url), fleet.start(settings, url)];
  for (const store of stores) {
    await fleet.counting(store);
    fleet.load(store);
  }
  await pause(LOADED_MS);
  const counting = () => Promise.all(stores.map((store) => fleet.counting(store)));
  return { fleet, url, stores, counting };
}

function clientOf(port: number): Redis {
  const client = new Redis(port).on('error', () => {});
  onTestFinished(() => client.disconnect());
  return client;
}

/** An address that leads to one Redis or another, as a name or a balancer does. */
async function startAddress(first: number) {
  let port = first;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const target = connect({ port, host: '127.0.0.1' });
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lead(to: number) {
      port = to;
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
  };
}

async function startFleetOnRedis(serverUrl?: string) {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  return { server, ...(await startFleet({ kind: 'redis', url: server.url, deadlineMs }, serverUrl)) };
}

describe.skipIf(postgresUrl === undefined)('no point is forgotten or above a limit when', () => {
  test('a failover loses writes, and replicas count on during it', async () => {
    const { sentinelUrls, name, primary, replica, stop } = await startSentinel();
    onTestFinished(stop);
    const settings = { kind: 'sentinel', sentinels: sentinelUrls, name, deadlineMs } as const;
    const { fleet, stores, counting } = await startFleet(settings);
    // The replica gets nothing more, and keeps what it has.
    await clientOf(replica.port).call('CLIENT', 'KILL', 'TYPE', 'master');
    await clientOf(replica.port).config('SET', 'masterauth', 'wrong');
    await clientOf(primary.port).config('SET', 'requirepass', 'other');
    await pause(LOADED_MS);
    await primary.kill();
    await counting();
    await pause(LOADED_MS);
    await fleet.endLoad();
    expect(await fleet.exhaust(stores[0] as never)).toEqual({ over: 0, forgotten: 0 });
  });

  test('a failover loses writes, and the first Redis is the primary again before anybody has noticed', async () => {
    const { server, fleet, stores, counting } = await startFleetOnRedis();
    const other = await startRedisServer();
    onTestFinished(() => other.stop());
    const [first, second] = [clientOf(server.port), clientOf(other.port)];
    await second.replicaof('127.0.0.1', server.port);
    await expect.poll(() => second.info('replication')).toContain('master_link_status:up');
    await second.replicaof('NO', 'ONE');
    await pause(LOADED_MS);
    await first.replicaof('127.0.0.1', other.port);
    await expect.poll(() => first.info('replication')).toContain('master_link_status:up');
    await first.replicaof('NO', 'ONE');
    await first.call('CLIENT', 'KILL', 'TYPE', 'normal');
    await counting();
    await pause(LOADED_MS);
    await fleet.endLoad();
    expect(await fleet.exhaust(stores[0] as never)).toEqual({ over: 0, forgotten: 0 });
  });

  test('the address of Redis leads to another one, which counts for a while, and back', async () => {
    const servers = [await startRedisServer(), await startRedisServer()];
    for (const server of servers) onTestFinished(() => server.stop());
    const address = await startAddress(servers[0]?.port ?? 0);
    const { fleet, stores, counting } = await startFleet({ kind: 'redis', url: address.url, deadlineMs });
    for (const server of [servers[1], servers[0]]) {
      address.lead(server?.port ?? 0);
      await counting();
      await pause(LOADED_MS);
    }
    // The first one counts at once, by what it had. What the second one has counted is put back there.
    await expect.poll(() => fleet.recoveries.length).toBeGreaterThanOrEqual(fleet.replicas.length + 1);
    await fleet.endLoad();
    await counting();
    const { forgotten } = await fleet.exhaust(stores[0] as never);
    expect(forgotten).toBe(0);
    expect(await fleet.exhaust(stores[1] as never)).toEqual({ over: 0, forgotten: 0 });
  });

  test('one master of a Cluster is emptied', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const { fleet, stores, counting } = await startFleet({
      kind: 'cluster',
      nodes: cluster.urls,
      deadlineMs,
    });
    await cluster.clients[1]?.flushall();
    await pause(50);
    await Promise.all(
      Array.from({ length: OWNERS }, async (_, owner) => {
        while ((await fleet.charge(stores[0] as never, owner)) === 'recovering') await pause(10);
      }),
    );
    await counting();
    await pause(LOADED_MS);
    await fleet.endLoad();
    expect(await fleet.exhaust(stores[0] as never)).toEqual({ over: 0, forgotten: 0 });
  });

  test('a Cluster with one node in the settings counts for the owners of all its masters', async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    // Slots are marked in order, so the first two masters are needed first, and the client connects to them last.
    const { fleet, stores } = await startFleet({ kind: 'cluster', nodes: cluster.urls.slice(2), deadlineMs });
    await Promise.all(cluster.clients.map((client) => client.flushall()));
    const [store] = stores;
    for (let owner = 0; owner < OWNERS; owner++)
      await expect.poll(() => fleet.charge(store as never, owner), { timeout: 20_000 }).toBe('admitted');
  });

  test('PostgreSQL is away for a moment when Redis is emptied: durable limits wait for it', async () => {
    const { server, fleet, url, stores, counting } = await startFleetOnRedis();
    const database = await takeDatabase(postgresUrl ?? '', url);
    await pause(LOADED_MS);
    await clientOf(server.port).flushall();
    await pause(1_000);
    expect(await fleet.charge(stores[0] as never, 0)).toBe('recovering');
    await database.giveBack();
    await counting();
    await fleet.endLoad();
    expect(await fleet.exhaust(stores[0] as never)).toEqual({ over: 0, forgotten: 0 });
  });

  test('PostgreSQL crashes while Redis is emptied, and again when counts are put back', async () => {
    const postgres = await startPostgres(findPostgres() ?? '');
    onTestFinished(() => postgres.stop());
    const { server, fleet, stores, counting } = await startFleetOnRedis(postgres.url);
    const redis = clientOf(server.port);
    await Promise.all([redis.flushall(), postgres.kill()]);
    await pause(LOADED_MS);
    expect(await fleet.charge(stores[0] as never, 0)).toBe('recovering');
    await postgres.restart();
    // A recovery has taken it, or has ended.
    await expect.poll(() => redis.exists(`${fleet.prefix}:1:{slots}:journal`)).toBe(1);
    const failed = fleet.failures.length;
    await postgres.kill();
    await expect.poll(() => fleet.failures.length).toBeGreaterThan(failed);
    await postgres.restart();
    await counting();
    await fleet.endLoad();
    expect(await fleet.exhaust(stores[0] as never)).toEqual({ over: 0, forgotten: 0 });
  });

  test('PostgreSQL ends every connection during the recovery', async () => {
    const { server, fleet, url, stores, counting } = await startFleetOnRedis();
    await clientOf(server.port).flushall();
    for (let time = 0; time < 5; time++) {
      await (await takeDatabase(postgresUrl ?? '', url)).giveBack();
      await pause(30);
    }
    await counting();
    await fleet.endLoad();
    expect(await fleet.exhaust(stores[0] as never)).toEqual({ over: 0, forgotten: 0 });
  });
});

test.skipIf(postgresUrl === undefined)(
  'a replica that is killed with Redis takes the counts of its last second, and no others, with it',
  async () => {
    const server = await startRedisServer();
    onTestFinished(() => server.stop());
    const settings = { kind: 'redis', url: server.url, deadlineMs } as const;
    const { fleet, url, stores, counting } = await startFleet(settings);
    const flushMs = 200;
    const order = JSON.stringify({ prefix: fleet.prefix, limit: LIMIT, settings, url, flushMs });
    const child = spawn(process.execPath, ['--import', 'tsx', REPLICA, order], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const rounds: { atMs: number; points: number[] }[] = [];
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => void rounds.push(JSON.parse(line)));
    await expect.poll(() => rounds.length).toBeGreaterThan(100);
    // So that there are rounds before the last second.
    await expect.poll(() => Date.now() - (rounds[0]?.atMs ?? 0)).toBeGreaterThan(2_000);
    const killedMs = Date.now();
    child.kill('SIGKILL');
    await Promise.all([once(lines, 'close'), server.kill()]);
    await server.start();
    await counting();
    await fleet.endLoad();
    const last = rounds.at(-1)?.points ?? [];
    const written = rounds.findLast(({ atMs }) => atMs < killedMs - 1_000);
    if (written === undefined) throw new Error('no round was written before the last second');
    fleet.addAdmitted(last);
    const { over, forgotten } = await fleet.exhaust(stores[0] as never);
    const lastSecond = last.reduce((sum, points, owner) => sum + points - (written.points[owner] ?? 0), 0);
    expect(over).toBeLessThanOrEqual(2 * lastSecond);
    // The last round may have been recorded, and not yet be in the answer.
    expect(forgotten).toBeLessThanOrEqual(2 * OWNERS);
  },
);
