import type { AddressInfo } from 'node:net';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import type { FleetTop } from '../../../src/admin/fleet/fleet.ts';
import type { FleetSnapshot } from '../../../src/admin/fleet/snapshot.ts';
import { listLimits } from '../../../src/commands/limit/limit.ts';
import { top } from '../../../src/commands/top.ts';
import type { TestGateway } from '../../fixtures/gateway.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { runHere } from '../../fixtures/run-here.ts';
import { startUpstream } from '../../fixtures/upstream.ts';
import { startWeir, type WeirProcess } from '../../fixtures/weir-process.ts';
import { SOON, useConsole } from './use-console.ts';

const { start, open } = useConsole();

async function startReplicas() {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const store = { kind: 'redis', url: redis.url, keyPrefix: uniquePrefix() };
  const gateways = [await start({ store }), await start({ store }), await start({ store })] as const;
  await expect.poll(async () => (await fleetOf(gateways[0])).replicas.length, SOON).toBe(3);
  return { redis, gateways };
}

const fleetOf = async ({ adminUrl }: Pick<TestGateway, 'adminUrl'>) =>
  (await (await fetch(`${adminUrl}/fleet`)).json()) as FleetSnapshot;

const headline = (page: Page) => page.locator('#headline').textContent();

it('without Redis, nothing says that the store is up or the fleet healthy', async () => {
  const { redis, gateways } = await startReplicas();
  const [gateway] = gateways;
  const { page } = await open(gateway);
  await expect.poll(() => headline(page), SOON).toBe('All 3 replicas are healthy');
  await redis.kill();
  // No request comes: the store is asked all the same.
  await expect.poll(() => headline(page), SOON).toBe('The store does not answer at 1 of 3 replicas');
  const tile = (name: string) => page.locator(`[data-tile=${name}]`).textContent();
  // What is measured at other moments becomes known, or unknown, at other moments.
  await expect.poll(() => tile('store'), SOON).toBe('Storedownredis · disconnected');
  await expect.poll(() => tile('replicas'), SOON).toMatch(/^Replicas1 of 3/);
  await expect.poll(() => tile('requests'), SOON).toContain('at 1 of 3 replicas');
  const rows = page.locator('#replicas tbody tr');
  await expect
    .poll(() => rows.allTextContents(), SOON)
    .toEqual([
      expect.stringContaining('redis down (disconnected)'),
      expect.stringMatching(/\(unknown since [\d:]{8}\).*redis unknown since/),
      expect.stringMatching(/\(unknown since [\d:]{8}\).*redis unknown since/),
    ]);
  await expect
    .poll(() => page.locator('#problems').textContent(), SOON)
    .toMatch(/^2 of 3 replicas unknown since [\d:]{8}, because Redis cannot be read/);
  const { replicas, othersUnknownSinceMs, asOfMs } = await fleetOf(gateway);
  expect(othersUnknownSinceMs).toBeLessThan(asOfMs);
  expect(replicas.filter(({ unknownSinceMs }) => unknownSinceMs === null)).toMatchObject([
    { store: { breaker: 'open', problem: 'disconnected' } },
  ]);
  expect(await gateway.metrics()).toContain('weir_store_breaker_state{route="primary"} 2');
  const { stdout } = await runHere(() => top({ url: gateway.adminUrl, once: true }));
  expect(stdout).toMatch(
    /^last 10s as of \S+Z, 1 replica, the others are unknown since \d{4}-.*Z, by refused, then points\n/,
  );

  await redis.start();
  await expect.poll(() => headline(page), SOON).toBe('All 3 replicas are healthy');
  await expect.poll(() => tile('store'), SOON).toMatch(/^Storeup/);
  await expect.poll(() => gateway.metrics(), SOON).toContain('weir_store_breaker_state{route="primary"} 0');
  const ranked = async () => (await (await fetch(`${gateway.adminUrl}/usage/top`)).json()) as FleetTop;
  await expect.poll(ranked, SOON).toMatchObject({ replicas: 3, othersUnknownSince: null });
});

it('a bucket that cannot be read is unknown', async () => {
  const { redis, gateways } = await startReplicas();
  const { page } = await open(gateways[0], { path: '/#/account/acct_1' });
  const card = page.locator('[data-bucket=account-read]');
  await expect.poll(() => card.textContent(), SOON).toContain('All points are available');
  await redis.kill();
  await expect.poll(() => card.textContent(), SOON).toMatch(/unknown since [\d:]{8}.*could not be read/);
  expect(await card.textContent()).not.toContain('available');
  // A page that was opened only then.
  await page.reload();
  await expect.poll(() => card.textContent(), SOON).toMatch(/unknown– of 20 points left/);
  expect(await card.textContent()).not.toContain('available');
});

/** One address for all replicas, like the address of a load balancer: each connection goes to the first that accepts it. */
async function startBalancer(replicas: readonly WeirProcess[]): Promise<string> {
  const ports = replicas.map(({ adminUrl }) => Number(new URL(adminUrl).port));
  const forward = (client: Socket, [port, ...others]: readonly number[]): void => {
    if (port === undefined) {
      client.destroy();
      return;
    }
    const server = createConnection(port, '127.0.0.1');
    let isConnected = false;
    server.on('error', () => (isConnected ? client.destroy() : forward(client, others)));
    server.on('connect', () => {
      isConnected = true;
      client.pipe(server).pipe(client);
      server.on('close', () => client.destroy());
    });
    client.on('close', () => server.destroy());
  };
  const balancer: Server = createServer((client) => {
    client.on('error', () => client.destroy());
    forward(client, ports);
  });
  await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => void balancer.close());
  return `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`;
}

it('a page whose replica is killed says so, finds another at its address, and says when no replica is left', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const settings = { admin: { host: '127.0.0.1', port: 0 } };
  const store = { kind: 'redis', url: redis.url, keyPrefix: uniquePrefix() };
  const startOne = async () => {
    const weir = await startWeir({ upstreamUrl: upstream.url, store, settings });
    onTestFinished(() => weir.close());
    return weir;
  };
  const replicas = [await startOne(), await startOne()];
  const { page } = await open({ adminUrl: await startBalancer(replicas) } as TestGateway);
  await expect.poll(() => headline(page), SOON).toBe('All 2 replicas are healthy');
  replicas[0]?.process.kill('SIGKILL');
  await expect.poll(() => headline(page), SOON).toBe('The replica is healthy');
  await expect.poll(() => page.locator('#connection').textContent(), SOON).toBe('live');

  // One that hangs says nothing at all.
  replicas[1]?.process.kill('SIGSTOP');
  onTestFinished(async () => void replicas[1]?.process.kill('SIGCONT'));
  await expect
    .poll(() => headline(page), SOON)
    .toMatch(/^The connection is lost: everything here is unknown since [\d:]{8}$/);
  const marks = () =>
    page.evaluate<string[]>(
      "[...document.querySelectorAll('#overview .panel')].map((panel) => String(panel.dataset.unknown))",
    );
  await expect
    .poll(async () => [...new Set((await marks()).map((mark) => mark.replace(/[\d:]{8}/, 'T')))], SOON)
    .toEqual(['unknown since T']);
  expect(await page.locator('#connection').textContent()).toMatch(/^unknown since/);
  replicas[1]?.process.kill('SIGCONT');
  await expect.poll(() => headline(page), SOON).toBe('The replica is healthy');
  await expect.poll(() => page.locator('[data-unknown]').count(), SOON).toBe(0);
});

it('a list that the page was never sent is unknown since the page was opened', async () => {
  const { gateways } = await startReplicas();
  const { page } = await open(gateways[0]);
  await page.route('**/limits/live', () => undefined);
  await page.reload();
  for (const panel of ['#live-limits', '#revocations'])
    await expect
      .poll(() => page.locator(panel).getAttribute('data-unknown'), SOON)
      .toMatch(/^unknown since [\d:]{8}$/);
  expect(await headline(page)).toBe('All 3 replicas are healthy');
});

it('lists that were not read from Redis for two periods are grey, and their age is in the answer', async () => {
  const { redis, gateways } = await startReplicas();
  const [{ adminUrl }] = gateways;
  const agesOf = () =>
    Promise.all(
      ['limits/live', 'blocks', 'revocations'].map(async (path) =>
        Number((await fetch(`${adminUrl}/${path}`)).headers.get('age')),
      ),
    );
  expect(Math.max(...(await agesOf()))).toBeLessThanOrEqual(10);
  const { page } = await open(gateways[0]);
  await page.locator('#revocations h2').waitFor();
  await redis.kill();
  await expect.poll(async () => Math.min(...(await agesOf())), SOON).toBeGreaterThan(10);
  for (const panel of ['#live-limits', '#revocations'])
    await expect
      .poll(() => page.locator(panel).getAttribute('data-unknown'), SOON)
      .toMatch(/^unknown since [\d:]{8}$/);
  const { stderr } = await runHere(() => listLimits({ url: adminUrl }));
  expect(stderr).toMatch(/^Changes are unknown since \d+ s ago: http:.* has not read Redis since\.\n$/);
});

it('while Redis is away, the console says by how many replicas limits are divided, and how old that number is', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const store = { kind: 'redis', url: redis.url, keyPrefix: uniquePrefix(), onStoreFailure: 'share' };
  const gateways = [await start({ store }), await start({ store })] as const;
  const shareOf = async () => (await fleetOf(gateways[0])).replicas.map((one) => one.store.share?.replicas);
  await expect.poll(shareOf, SOON).toEqual([2, 2]);
  const { page } = await open(gateways[0]);
  await redis.kill();
  await expect
    .poll(() => page.locator('#replicas tbody').textContent(), SOON)
    .toMatch(/redis down \(disconnected\): 1\/2 of each limit, for 2 replicas counted \d+ s ago/);
});
