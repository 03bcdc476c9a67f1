import { expect, it, onTestFinished } from 'vitest';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { usage } from '../../src/commands/usage.ts';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

const SOON = { timeout: 20_000, interval: 50 };

async function start(store: object, limits: object = PLENTY): Promise<TestGateway> {
  const gateway = await startGateway({ store: { ...store }, limits: { ...limits } });
  onTestFinished(() => gateway.close());
  return gateway;
}

const read = async (gateway: TestGateway, path: string) =>
  (await (await fetch(`${gateway.adminUrl}/usage/${path}`)).json()) as Usage;

const send = (gateway: TestGateway, count: number, path = '/v3/things', token = 'service') =>
  Promise.all(Array.from({ length: count }, () => gateway.send('GET', path, { token })));

it('requests at two replicas are one sum at both, with the number of replicas', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start(store), await start(store)] as const;
  await send(gateways[0], 10);
  await send(gateways[1], 20);
  await send(gateways[1], 2, '/v3/reports');
  for (const gateway of gateways) {
    await expect
      .poll(() => read(gateway, 'accounts/acct_1'), SOON)
      .toMatchObject({
        replicas: 2,
        ofReplicas: 2,
        recent: { '10m': { requests: 32, points: 50, refused: 0 } },
        operations: [
          { operation: 'listThings', requests: 30, points: 30 },
          { operation: 'reportRead', requests: 2, points: 20 },
        ],
      });
    const { series } = await read(gateway, 'accounts/acct_1');
    expect(series).toHaveLength(60);
    expect(series.reduce((sum, { requests }) => sum + requests, 0)).toBe(32);
  }
});

it('the first question gets the whole answer, and one that does not wait gets a part that says so', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start(store), await start(store)] as const;
  await send(gateways[1], 5);
  await expect.poll(async () => (await read(gateways[0], 'organizations/org_2')).ofReplicas, SOON).toBe(2);
  const part = await read(gateways[0], 'organizations/org_1?wait=no');
  expect(part.replicas).toBeLessThanOrEqual(2);
  const { stdout } = await runHere(() => usage('acct_1', { url: gateways[0].adminUrl }));
  expect(stdout).toMatch(/10m +5 +5 +0\n/);
  expect(stdout).toContain('the other figures are from all 2 replicas.');
});

it('an Organization has the sums of its Accounts at all replicas', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start(store), await start(store)] as const;
  await send(gateways[0], 3);
  await send(gateways[1], 4, '/v3/things', 'other');
  await send(gateways[1], 2);
  await expect
    .poll(async () => (await read(gateways[0], 'organizations/org_1')).accounts, SOON)
    .toEqual([
      { id: 'acct_1', points: 5, requests: 5, refused: 0, error: 0 },
      { id: 'acct_2', points: 4, requests: 4, refused: 0, error: 0 },
    ]);
});

it('refusals of an Account at another replica are all shown', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start(store, {}), await start(store, {})] as const;
  const answers = await send(gateways[1], 30);
  // A machine that stands still for a moment makes the replica answer 503 to some of them.
  const count = answers.filter(({ status }) => status === 429).length;
  expect(count).toBeGreaterThan(0);
  expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(20);
  await expect
    .poll(async () => (await read(gateways[0], 'accounts/acct_1')).recent['10m'].refused, SOON)
    .toBe(count);
});

it('without Redis the counts cover one replica, and say so', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const store = uniqueRedisStore(redis.url);
  const gateways = [await start(store), await start(store)] as const;
  await send(gateways[0], 3);
  await send(gateways[1], 3);
  await expect
    .poll(async () => (await read(gateways[0], 'accounts/acct_1')).recent['10m'].requests, SOON)
    .toBe(6);
  await redis.kill();
  await expect
    .poll(() => read(gateways[0], 'accounts/acct_1'), SOON)
    .toMatchObject({ replicas: 1, ofReplicas: null, recent: { '10m': { requests: 3 } } });
});

it('a replica that ends is no longer summed', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start(store), await start(store)] as const;
  await send(gateways[1], 3);
  await expect.poll(async () => (await read(gateways[0], 'accounts/acct_1')).replicas, SOON).toBe(2);
  await gateways[1].close();
  await expect
    .poll(() => read(gateways[0], 'accounts/acct_1'), SOON)
    .toMatchObject({ replicas: 1, ofReplicas: 1, recent: { '10m': { requests: 0 } } });
});
