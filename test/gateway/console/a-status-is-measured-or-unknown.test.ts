import { expect, it } from 'vitest';
import type { FleetTop } from '../../../src/admin/fleet/fleet.ts';
import { top } from '../../../src/commands/top.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix } from '../../fixtures/redis-url.ts';
import { runHere } from '../../fixtures/run-here.ts';
import { fleetOf, headlineOf, SOON, useConsole } from './use-console.ts';

const { start, startReplicas, open, atEnd } = useConsole();

it('without Redis, nothing says that the store is up or the fleet healthy', async () => {
  const { redis, gateways } = await startReplicas();
  const [gateway] = gateways;
  const { page } = await open(gateway);
  await expect.poll(() => headlineOf(page), SOON).toBe('All 3 replicas are healthy');
  await redis.kill();
  // No request comes: the store is asked all the same.
  await expect.poll(() => headlineOf(page), SOON).toBe('The store does not answer at 1 of 3 replicas');
  const tile = (name: string) => page.locator(`[data-tile=${name}]`).textContent();
  // What is measured at other moments becomes known, or unknown, at other moments.
  await expect.poll(() => tile('store'), SOON).toBe('Storedownredis · disconnected');
  await expect.poll(() => tile('replicas'), SOON).toMatch(/^Replicas1 of 3/);
  await expect.poll(() => tile('requests'), SOON).toContain('at 1 of 3 replicas');
  for (const ranking of ['accounts', 'organizations', 'refusals'])
    await expect
      .poll(() => page.locator(`#${ranking} .panel-head`).textContent(), SOON)
      .toMatch(/at 1 of 3 replicas$/);
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
  await expect.poll(() => headlineOf(page), SOON).toMatch(/^Lost: the store at 3 replicas on /);
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

it('while Redis is away, the console says by how many replicas limits are divided, and how old that number is', async () => {
  const redis = await startRedisServer();
  atEnd(() => redis.stop());
  const store = { kind: 'redis', url: redis.url, keyPrefix: uniquePrefix(), onStoreFailure: 'share' };
  const gateways = [await start({ store }), await start({ store })] as const;
  const shareOf = async () => (await fleetOf(gateways[0])).replicas.map((one) => one.store.share?.replicas);
  await expect.poll(shareOf, SOON).toEqual([2, 2]);
  const { page } = await open(gateways[0]);
  await redis.kill();
  await expect
    .poll(() => page.locator('#replicas tbody').textContent(), SOON)
    .toMatch(/redis down \(disconnected\): 1\/2 of each limit, for 2 replicas counted \d+\u00a0s ago/);
});
