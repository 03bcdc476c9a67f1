import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import type { ShownChange } from '../../../src/admin/history/change.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../../fixtures/redis-url.ts';
import { headlineOf, SOON, useConsole } from './use-console.ts';

const { start, open, startReplicas } = useConsole();

const HEALTHY = 'All 3 replicas are healthy';

it('an outage of the store that is over is the red headline of every console, until one of its readers has seen it', async () => {
  const { redis, gateways } = await startReplicas();
  const [first, second] = gateways;
  const pages = [(await open(first)).page, (await open(second)).page] as const;
  for (const page of pages) await expect.poll(() => headlineOf(page), SOON).toBe(HEALTHY);
  await redis.kill();
  await expect.poll(() => headlineOf(pages[0]), SOON).toMatch(/^The store does not answer/);
  await redis.start();
  for (const page of pages)
    await expect
      .poll(() => headlineOf(page), SOON)
      .toMatch(/^Lost: the store at 3 replicas on \d+ \w+, \d+:\d+, for \d+\u00a0s/);

  const [page] = pages;
  await page.locator('.summary').getByRole('button', { name: 'Seen…' }).click();
  await page.getByLabel('Why').fill('drill');
  await page.getByLabel('Your name').fill('alice');
  await page.getByRole('button', { name: 'Mark as seen' }).click();
  for (const one of pages) await expect.poll(() => headlineOf(one), SOON).toBe(HEALTHY);
  const changes = (await (await fetch(`${second.adminUrl}/changes`)).json()) as ShownChange[];
  expect(changes[0]).toMatchObject({ kind: 'losses.seen', by: 'alice', why: 'drill' });

  await redis.kill();
  await expect.poll(() => headlineOf(page), SOON).toMatch(/^The store does not answer/);
  await redis.start();
  await expect.poll(() => headlineOf(page), SOON).toMatch(/^Lost: /);
});

/** A store, and a function that records what a replica lost or has again. */
function useRecord() {
  const store = uniqueRedisStore();
  const client = new Redis(sharedRedisUrl());
  onTestFinished(() => client.disconnect());
  const record = (kind: string, atMs: number, replica = 'weir-9') => {
    const of = { subject: replica, replica, instance: `of ${replica}` };
    const change = { atMs, kind, text: 'was lost', by: null, why: null, ...of };
    return client.zadd(`${store.keyPrefix}:1:changes:record`, atMs + 3_600_000, JSON.stringify(change));
  };
  return { store, record };
}

it('a replica that lost the store several times is one replica', async () => {
  const { store, record } = useRecord();
  for (const agoMs of [30_000, 20_000, 10_000]) await record('store.lost', Date.now() - agoMs);
  const { page } = await open(await start({ store }));
  await expect.poll(() => headlineOf(page), SOON).toMatch(/^Lost: the store at weir-9 since /);
  await record('store.lost', Date.now(), 'weir-8');
  await expect.poll(() => headlineOf(page), SOON).toMatch(/^Lost: the store at 2 replicas since /);
});

it('the tile of the replicas has no green tick while one of them is lost', async () => {
  const { store, record } = useRecord();
  await record('replica.lost', Date.now() - 20_000);
  const { page } = await open(await start({ store }));
  const tile = page.locator('[data-tile=replicas]');
  await expect.poll(() => tile.textContent(), SOON).toMatch(/^Replicas11 lost · limits [0-9a-f]{8}$/);
  expect(await tile.getAttribute('class')).toContain('bad');
  await record('replica.back', Date.now());
  await expect.poll(() => tile.textContent(), SOON).toMatch(/^Replicas1limits [0-9a-f]{8}$/);
  expect(await tile.getAttribute('class')).toContain('good');
});

it('what cannot be seen is refused', async () => {
  const { gateways } = await startReplicas();
  const see = (body: object) =>
    fetch(`${gateways[0].adminUrl}/losses/seen`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  const later = new Date(Date.now() + 3_600_000).toISOString();
  expect((await see({})).status).toBe(400);
  for (const until of [later, 'x', null, '2026-02-30T00:00:00Z', 'loss 5', '2026-11-25 13:05'])
    expect((await see({ why: 'w', until })).status).toBe(400);
  expect((await see({ why: 'w' })).status).toBe(200);
});
