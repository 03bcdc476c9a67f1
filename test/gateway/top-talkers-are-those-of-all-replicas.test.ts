import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import type { FleetTop } from '../../src/admin/fleet/fleet.ts';
import { type TopOptions, top } from '../../src/commands/top.ts';
import { sharedByRedis } from '../../src/store/redis/shared/shared-by-redis.ts';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { type RedisServer, startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

/** For what a replica does once a second, on a machine that is busy. */
const SOON = { timeout: 20_000, interval: 50 };

type Options = Parameters<typeof startGateway>[0];

async function start(options: Options = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

async function read(gateway: TestGateway, window = '10m'): Promise<FleetTop> {
  const response = await fetch(`${gateway.adminUrl}/usage/top?window=${window}`);
  expect(response.status).toBe(200);
  return (await response.json()) as FleetTop;
}

const pointsOf = ({ byPoints }: FleetTop['accounts']) => byPoints.map(({ id, points }) => [id, points]);

async function spend(gateway: TestGateway): Promise<void> {
  await gateway.send('GET', '/v3/reports', { token: 'service' });
  await gateway.send('GET', '/v3/things', { token: 'lonely' });
}

it('one process ranks its own Accounts and Organizations, by points and by refusals', async () => {
  const gateway = await start();
  for (let round = 0; round < 3; round++) await spend(gateway);
  const talker = (id: string, points: number, requests: number, refused: number) => ({
    id,
    points,
    requests,
    refused,
    error: 0,
    trend: expect.any(Array),
  });
  const first = { ...talker('acct_1', 20, 3, 1), organization: 'org_1' };
  await expect
    .poll(() => read(gateway), SOON)
    .toEqual({
      window: '10m',
      replicas: 1,
      asOf: expect.any(String),
      othersUnknownSince: null,
      accounts: {
        byPoints: [first, talker('acct_3', 3, 3, 0)],
        byRequests: [first, talker('acct_3', 3, 3, 0)],
        byRefused: [first],
      },
      organizations: {
        byPoints: [talker('org_1', 20, 3, 1)],
        byRequests: [talker('org_1', 20, 3, 1)],
        byRefused: [talker('org_1', 20, 3, 1)],
      },
    });
  const wrong = await fetch(`${gateway.adminUrl}/usage/top?window=1h`);
  expect([wrong.status, await wrong.json()]).toEqual([400, { error: 'window takes 10s, 1m, 10m.' }]);
});

it('every replica ranks the requests of all', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store }), await start({ store })];
  for (const gateway of gateways) await spend(gateway);
  for (const gateway of gateways) {
    await expect.poll(async () => (await read(gateway)).replicas, SOON).toBe(3);
    await expect
      .poll(async () => pointsOf((await read(gateway)).accounts), SOON)
      .toEqual([
        ['acct_1', 20],
        ['acct_3', 3],
      ]);
  }
});

it('a replica that stops is gone at once, and one that crashes within five seconds', async () => {
  const store = uniqueRedisStore();
  const [staying, leaving] = [await start({ store }), await startGateway({ store })];
  await spend(leaving);
  await expect
    .poll(async () => pointsOf((await read(staying)).accounts), SOON)
    .toContainEqual(['acct_1', 10]);
  await leaving.close();
  expect(await read(staying)).toMatchObject({ replicas: 1, accounts: { byPoints: [] } });

  // What a replica that is killed leaves behind: a text that nobody renews.
  const board = sharedByRedis(store, () => {}).openBoard('top', 'killed');
  onTestFinished(() => board.close());
  const client = new Redis(sharedRedisUrl());
  onTestFinished(async () => client.disconnect());
  const text = await client.get(
    (await client.keys(`${store.keyPrefix}:1:{top}:*`)).find((key) => !key.endsWith(':killed')) ?? '',
  );
  await expect
    .poll(
      () =>
        board.post(text ?? '').then(
          () => true,
          () => false,
        ),
      SOON,
    )
    .toBe(true);
  const lifeMs = await client.pttl(`${store.keyPrefix}:1:{top}:killed`);
  expect(lifeMs).toBeGreaterThan(0);
  expect(lifeMs).toBeLessThanOrEqual(4_000);
  await expect.poll(async () => (await read(staying)).replicas, SOON).toBe(1);
});

it('everything on the board expires', async () => {
  const store = uniqueRedisStore();
  const gateway = await start({ store });
  await spend(gateway);
  const client = new Redis(sharedRedisUrl());
  onTestFinished(async () => client.disconnect());
  const keys = () => client.keys(`${store.keyPrefix}:1:{top}*`);
  await expect.poll(async () => (await keys()).length, SOON).toBe(2);
  for (const key of await keys()) expect(await client.pttl(key), key).toBeGreaterThan(0);
});

it('works in a Redis Cluster', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const store = { kind: 'cluster', nodes: cluster.urls, keyPrefix: uniquePrefix(), deadlineMs: 5_000 };
  const gateways = [await start({ store }), await start({ store })];
  for (const gateway of gateways) await spend(gateway);
  for (const gateway of gateways) {
    await expect
      .poll(async () => pointsOf((await read(gateway)).accounts), SOON)
      .toEqual([
        ['acct_1', 20],
        ['acct_3', 2],
      ]);
  }
});

it('without Redis a replica ranks what it has seen, and finds the others again', async () => {
  const server: RedisServer = await startRedisServer();
  onTestFinished(() => server.stop());
  const store = uniqueRedisStore(server.url);
  const gateways = [await start({ store, limits: PLENTY }), await start({ store, limits: PLENTY })] as const;
  await expect.poll(async () => (await read(gateways[0])).replicas, SOON).toBe(2);
  await server.kill();
  await gateways[0].send('GET', '/v3/things');
  await expect.poll(async () => (await read(gateways[0])).accounts.byPoints[0]?.requests, SOON).toBe(1);
  await expect.poll(async () => (await read(gateways[0])).replicas, SOON).toBe(1);
  const unknownSince = async () => (await read(gateways[0])).othersUnknownSince ?? 'known';
  await expect.poll(unknownSince, SOON).toMatch(/^\d{4}-/);
  await server.start();
  await expect.poll(async () => (await read(gateways[0])).replicas, SOON).toBe(2);
});

it('weir top prints the rankings, or the same document as the admin port', async () => {
  const gateway = await start();
  for (let round = 0; round < 3; round++) await spend(gateway);
  await expect.poll(async () => (await read(gateway)).accounts.byPoints.length, SOON).toBe(2);
  await expect.poll(async () => (await read(gateway)).accounts.byPoints[0]?.requests, SOON).toBe(3);
  const run = (options: TopOptions) =>
    runHere(() => top({ url: gateway.adminUrl, window: '10m', ...options }));

  const { stdout } = await run({ once: true });
  expect(stdout).toMatch(
    /^last 10m as of \S+Z, 1 replica, by refused, then points\n\nAccount +Organization +points +requests +refused\nacct_1 +org_1 +20 +3 +1\nacct_3 +3 +3 +0\n/,
  );
  expect((await run({ once: true, by: 'refused' })).stdout).toMatch(
    /refused\nacct_1 +org_1 +20 +3 +1\n\nOrganization/,
  );
  const { asOf: _, ...document } = await read(gateway);
  expect(JSON.parse((await run({ json: true })).stdout)).toMatchObject(document);
  expect((await run({ once: true, window: '1h' })).failure).toBe('--window takes 10s, 1m, 10m.');
  expect((await run({ once: true, by: 'name' })).failure).toBe('--by takes points, requests, refused.');
  expect((await run({ once: true, by: 'requests' })).stdout).toMatch(/by requests\n\n.*\nacct_1.*\nacct_3/);
});
