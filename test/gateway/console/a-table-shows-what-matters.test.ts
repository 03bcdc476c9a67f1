import { expect, it } from 'vitest';
import { SOON, useConsole } from './use-console.ts';

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

it('an Account that is refused everything is among the first ten, although it has no points', async () => {
  const names = Array.from({ length: 13 }, (_, index) => `acct_n${index}`);
  const identities = {
    tokens: Object.fromEntries(names.map((name) => [name, `svc_${name}`])),
    principals: Object.fromEntries(
      names.map((name) => [`svc_${name}`, { type: 'ServiceAccount', account: name }]),
    ),
    accounts: Object.fromEntries(names.map((name) => [name, {}])),
  };
  const gateway = await start({ identities });
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
