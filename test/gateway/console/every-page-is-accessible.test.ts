import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Result, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { SOON, useConsole } from './use-console.ts';

const { start, open } = useConsole();

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Runs axe-core, and brings only violations out of the page: what passes is much more. */
async function violations(page: Page, options: RunOptions): Promise<Result[]> {
  const run = JSON.stringify({ ...options, resultTypes: ['violations'] });
  return page.evaluate(`axe.run(${run}).then(({ violations }) => violations)`);
}

/** What axe-core finds: the rule, and where. In the dark, only colours are others. */
async function findings(page: Page): Promise<readonly string[]> {
  const inLight = await violations(page, {});
  await page.emulateMedia({ colorScheme: 'dark' });
  const inDark = await violations(page, { runOnly: ['color-contrast'] });
  await page.emulateMedia({ colorScheme: 'light' });
  return [...inLight, ...inDark].flatMap(({ id, nodes }) =>
    nodes.map(({ target, any }) => `${id} ${target} ${any[0]?.message ?? ''}`),
  );
}

it('axe-core finds nothing on any page', async () => {
  const gateway = await start({ limits: { plans: { pro: { 'account-read': 50 } } } });
  const act = (path: string, method: string, body: object) =>
    fetch(`${gateway.adminUrl}/${path}`, {
      method,
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ why: 'a test', ...body }),
    });
  await act('limits/live/accounts/acct_1', 'PUT', { 'account-read': 40 });
  await act('blocks/accounts/acct_2', 'PUT', {});
  await act('revocations', 'POST', { token: 'other' });
  for (let round = 0; round < 12; round++) {
    await gateway.send('GET', '/v3/reports', { token: 'lonely' });
    await gateway.send('GET', '/v3/reports');
  }
  const { page } = await open(gateway);
  await page.evaluate(AXE);
  await page.locator('#refusals tbody tr').first().waitFor();
  await page.locator('#revocations tbody tr').first().waitFor();
  await expect.poll(() => page.locator('#headline a').count(), SOON).toBe(1);
  expect.soft(await findings(page), 'the fleet').toEqual([]);

  await page.getByRole('button', { name: 'Revoke…' }).click();
  expect.soft(await findings(page), 'a dialog').toEqual([]);
  await page.keyboard.press('Escape');

  for (const path of ['account/acct_2', 'organization/org_1', 'person/person_1', 'address/203.0.113.7']) {
    await page.evaluate(`location.hash = '#/${path}'`);
    await page.locator('#owner .bucket').first().waitFor();
    expect.soft(await findings(page), path).toEqual([]);
  }
  await page.evaluate("location.hash = '#/operations'");
  await page.locator('#operation-list tbody tr').first().waitFor();
  expect.soft(await findings(page), 'operations').toEqual([]);

  await gateway.close();
  await page.evaluate("location.hash = '#/'");
  await expect.poll(() => page.locator('#headline').textContent(), SOON).toContain('connection is lost');
  expect.soft(await findings(page), 'a lost connection').toEqual([]);
});
