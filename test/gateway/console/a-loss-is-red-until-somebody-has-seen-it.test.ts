import { expect, it } from 'vitest';
import type { ShownChange } from '../../../src/admin/history/change.ts';
import { headlineOf, SOON, useConsole } from './use-console.ts';

const { open, startReplicas } = useConsole();

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
      .toMatch(/^Lost: the store at 3 replicas on \d+ \w+, \d+:\d+, for \d+ s/);

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

it('what cannot be seen is refused', async () => {
  const { gateways } = await startReplicas();
  const see = (body: object) =>
    fetch(`${gateways[0].adminUrl}/losses/seen`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  const later = new Date(Date.now() + 3_600_000).toISOString();
  for (const body of [{}, { why: 'w', until: later }, { why: 'w', until: 'x' }, { why: 'w', until: null }])
    expect((await see(body)).status).toBe(400);
  expect((await see({ why: 'w' })).status).toBe(200);
});
