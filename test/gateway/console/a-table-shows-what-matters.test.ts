import { expect, it } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { ownAccounts } from '../../fixtures/own-accounts.ts';
import { fleetOf, headlineOf, SOON, useConsole } from './use-console.ts';

const { start, open } = useConsole();

it('operations are filtered by name, method and path, and their names are whole', async () => {
  const openapi = {
    openapi: '3.1.0',
    info: { title: 'test', version: '3' },
    paths: {
      '/v3/things': { get: { operationId: 'listAllThingsOfTheOrganizationThatAreNotArchived' } },
      '/v3/reports': { get: { operationId: 'readReport' }, post: { operationId: 'createReport' } },
    },
  };
  const { page, messages } = await open(await start({ openapi }), { path: '/#/operations' });
  const rows = page.locator('#operation-list tbody tr');
  await expect.poll(() => rows.count(), SOON).toBe(3);
  expect(await rows.locator('.id').allTextContents()).toContain(
    'listAllThingsOfTheOrganizationThatAreNotArchived',
  );
  const cut = await rows
    .locator('.id')
    .evaluateAll((nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth).length);
  expect(cut).toBe(0);
  await page.getByLabel('Filter operations').fill('post REPORTS');
  await expect.poll(() => rows.allTextContents(), SOON).toEqual([expect.stringContaining('createReport')]);
  expect(messages).toEqual([]);
});

it('of many operations the first are shown, all on demand, and a found one alone', async () => {
  const paths = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [
      `/v3/r${index + 10}`,
      { get: { operationId: `read${index + 10}` } },
    ]),
  );
  const openapi = { openapi: '3.1.0', info: { title: 'test', version: '3' }, paths };
  const { page, messages } = await open(await start({ openapi }), { path: '/#/operations' });
  const rows = page.locator('#operation-list tbody tr');
  await expect.poll(() => rows.count(), SOON).toBe(20);
  await page.getByRole('button', { name: 'Show all 30' }).click();
  await expect.poll(() => rows.count(), SOON).toBe(30);
  await page.getByRole('button', { name: 'Show the first 20' }).click();
  await expect.poll(() => rows.count(), SOON).toBe(20);
  await page.keyboard.press('/');
  await page.keyboard.type('read39');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'read39' }).click();
  await expect.poll(() => rows.allTextContents(), SOON).toEqual([expect.stringContaining('/v3/r39')]);
  expect(messages).toEqual([]);
});

it('a window is not rounded', async () => {
  const limits = { limits: { long: { per: 'account', points: 1000, window: '9000s' } } };
  const gateway = await start({ limits });
  const { page } = await open(gateway, { path: '/#/operations' });
  const row = page.locator('#limit-list tbody tr', { hasText: 'long' });
  await expect.poll(() => row.textContent(), SOON).toContain('150\u00a0min');
  await page.goto(`${gateway.adminUrl}/#/account/acct_1`);
  await expect
    .poll(() => page.locator('[data-bucket=long]').textContent(), SOON)
    .toContain('1,000 points left, per\u00a0150\u00a0min');
});

it('the id of a refused request is whole', async () => {
  const gateway = await start();
  for (let sent = 0; sent < 3; sent++) await gateway.send('GET', '/v3/reports');
  const { page } = await open(gateway);
  const id = page.locator('#refusals .id').last();
  await expect.poll(() => id.textContent(), SOON).toMatch(/^[0-9a-f-]{36}$/);
  const { width, room, height } = await id.evaluate((node) => ({
    width: node.scrollWidth,
    room: node.clientWidth,
    height: node.getClientRects().length,
  }));
  expect(width).toBeLessThanOrEqual(room);
  expect(height).toBe(1);
});

it('a certificate that has ended is bad, and not one that ends soon', async () => {
  const gateway = await start({ settings: { listen: { tls: newCertificate() } } });
  const { page } = await open(gateway);
  const headline = page.locator('#headline');
  await expect.poll(() => headline.textContent(), SOON).toBe('A certificate ends within 14\u00a0days');
  await page.clock.setFixedTime(Date.now() + 3 * 86_400_000);
  await expect.poll(() => headline.textContent(), SOON).toBe('A certificate has expired');
});

it('a journal that has not been written for more than a minute is in the headline', async () => {
  const gateway = await start();
  const { page } = await open(gateway);
  await page.route('**/fleet/events*', async (route) => {
    const fleet = await fleetOf(gateway);
    const replicas = fleet.replicas.map((one) => ({ ...one, journalLagSeconds: 61 }));
    const body = `event: fleet\ndata: ${JSON.stringify({ ...fleet, replicas })}\n\n`;
    await route.fulfill({ contentType: 'text/event-stream', body });
  });
  await page.reload();
  await expect
    .poll(() => headlineOf(page), SOON)
    .toBe('The journal has not been written for more than a minute');
});

it('an Account that is refused everything is among the first ten, although it has no points', async () => {
  const names = Array.from({ length: 13 }, (_, index) => `acct_n${index}`);
  const gateway = await start({ identities: ownAccounts(names) });
  const [flooder = '', ...others] = names;
  await fetch(`${gateway.adminUrl}/blocks/accounts/${flooder}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ why: 'w', by: 'alice' }),
  });
  for (const token of others) await gateway.send('GET', '/v3/things', { token });
  for (let sent = 0; sent < 3; sent++) await gateway.send('GET', '/v3/things', { token: flooder });
  const { page } = await open(gateway);
  await page.locator('#window input[value="10m"]').check();
  const rows = page.locator('#accounts tbody tr');
  await expect.poll(() => rows.count(), SOON).toBe(10);
  await expect.poll(() => rows.last().textContent(), SOON).toMatch(/^acct_n0 blocked.*3 · 100\u00a0%$/);
  // Its trend is of refusals, and looks like it.
  const [spender, flood] = [rows.first().locator('.sparkline'), rows.last().locator('.sparkline')];
  expect(await flood.getAttribute('class')).toContain('refusals');
  expect(await spender.getAttribute('class')).not.toContain('refusals');
});

it('with the memory store the console offers no revocations, and asks for none', async () => {
  const { page, messages } = await open(await start({ store: { kind: 'memory' } }));
  let lists = 0;
  page.on('response', (response) => {
    if (response.url().endsWith('/limits/live')) lists += 1;
  });
  await expect.poll(() => lists, SOON).toBeGreaterThan(1);
  expect(await page.locator('#revocations').isVisible()).toBe(false);
  expect(await page.locator('#live-limits').isVisible()).toBe(true);
  expect(messages).toEqual([]);
});
