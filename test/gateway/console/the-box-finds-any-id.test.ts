import { expect, it } from 'vitest';
import { SOON, useConsole } from './use-console.ts';

const { start, open } = useConsole();

it('the box opens the owner of an id without a choice of scope, and offers nothing for an id that nobody has', async () => {
  const gateway = await start();
  const { page, messages } = await open(gateway);
  const search = async (id: string) => {
    await page.keyboard.press('/');
    // It replaces what was searched before.
    await page.keyboard.type(id);
    await page.keyboard.press('Enter');
  };
  await search('org_1');
  await expect.poll(() => page.locator('#owner h1').textContent(), SOON).toBe('Organization org_1');
  expect(page.url()).toMatch(/#\/organization\/org_1$/);
  await expect.poll(() => page.getByRole('button', { name: 'Block…' }).isVisible(), SOON).toBe(true);

  await search('acct_11');
  await expect
    .poll(() => page.locator('#owner').textContent(), SOON)
    .toContain('Unknown: nothing has this id.');
  expect(await page.locator('#owner').getByRole('button').count()).toBe(0);
  await page.locator('#owner').getByRole('link', { name: 'acct_1', exact: true }).click();
  await expect.poll(() => page.locator('#owner h1').textContent(), SOON).toBe('Account acct_1');
  expect(messages).toEqual([]);

  await search('svc_1');
  await expect
    .poll(() => page.locator('#owner .found').textContent(), SOON)
    .toBe('principal svc_1 ServiceAccount of account acct_1');
  await page.locator('#owner .found').getByRole('link', { name: 'acct_1', exact: true }).click();
  await expect.poll(() => page.locator('#owner h1').textContent(), SOON).toBe('Account acct_1');

  await search('10.1.2.3/8');
  await expect
    .poll(() => page.locator('#owner h1').textContent(), SOON)
    .toBe('Range of addresses 10.0.0.0/8');
  await page.getByRole('button', { name: 'Block…' }).click();
  await page.locator('dialog').getByLabel('Your name').fill('alice');
  await page.locator('dialog').getByLabel('Why').fill('scanners');
  await page.getByRole('button', { name: 'Block the address' }).click();
  await expect
    .poll(() => page.locator('#owner .blocks').textContent(), SOON)
    .toContain('The address 10.0.0.0/8 is blocked until');

  await page.goto(`${gateway.adminUrl}/#/account/org_1`);
  await expect
    .poll(() => page.locator('#owner .problem').first().textContent(), SOON)
    .toContain('There is no account org_1. org_1 is an organization.');
  expect(await page.getByRole('button', { name: 'Block…' }).isVisible()).toBe(false);
});

it('the box explains a refused request', async () => {
  const gateway = await start();
  await gateway.send('GET', '/v3/reports');
  await gateway.send('GET', '/v3/reports');
  const headers = { 'X-Request-Id': 'refused-1' };
  expect((await gateway.send('GET', '/v3/reports', { headers })).status).toBe(429);
  const { page, messages } = await open(gateway);
  await page.keyboard.press('/');
  await page.locator('#search-id').fill('refused-1');
  await page.keyboard.press('Enter');
  await expect
    .poll(() => page.locator('#owner').textContent(), SOON)
    .toMatch(/had used 20 of 20 points in 1\u00a0min \(account-read\).*The limit of 20 is the default/);
  const cells = page.locator('#owner table tbody td');
  await expect.poll(() => cells.allTextContents(), SOON).toEqual(['reportRead', 'svc_1', '2', '20']);
  expect(messages).toEqual([]);
});

it('a search that is answered late leaves the page that is open by then', async () => {
  const { page, messages } = await open(await start());
  let answer: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    void page.route('**/find?q=*', async (route) => {
      const answered = new Promise<void>((go) => {
        answer = go;
      });
      resolve();
      await answered;
      await route.continue();
    });
  });
  await page.evaluate("location.hash = '#/find/org_1'");
  await asked;
  await page.evaluate("location.hash = '#/account/acct_1'");
  await expect.poll(() => page.locator('#owner h1').textContent(), SOON).toBe('Account acct_1');
  const found = page.waitForResponse('**/find?q=*');
  answer();
  await (await found).finished();
  // By the time of this second answer, the page has read the first.
  await page.evaluate("fetch('/plans').then((one) => one.text())");
  expect(page.url()).toMatch(/#\/account\/acct_1$/);
  expect(await page.locator('#owner h1').textContent()).toBe('Account acct_1');
  expect(messages).toEqual([]);
});
