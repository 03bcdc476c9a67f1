import { expect, it } from 'vitest';
import { SOON, useConsole } from './use-console.ts';

const TOKEN = 'a-token-of-admins';

const { start, open } = useConsole();

it('a limit that is raised on the page is in the next response, and removed again', async () => {
  const gateway = await start();
  const policy = async () => (await gateway.send('GET', '/v3/things')).headers.get('RateLimit-Policy');
  expect(await policy()).toContain('"account-read";q=20;');
  const { page, messages } = await open(gateway, { path: '/#/account/acct_1' });
  const bucket = page.locator('[data-bucket=account-read]');
  await expect.poll(() => bucket.textContent(), SOON).toContain('19 of 20 points left');
  await bucket.getByRole('button', { name: 'Set a live limit…' }).click();
  const dialog = page.locator('#dialog');
  await dialog.getByLabel('Points per window').fill('700');
  expect(await dialog.locator('.sentence').textContent()).toBe(
    'account-read of acct_1: 700 points instead of 20, at every replica, for 1\u00a0h.',
  );
  await dialog.getByLabel('Your name').fill('alice');
  const set = dialog.getByRole('button', { name: 'Set the limit' });
  // Nothing happens without a reason.
  await set.click();
  expect(await policy()).toContain('"account-read";q=20;');
  await dialog.getByLabel('Why').fill('launch');
  await set.click();
  await expect.poll(() => dialog.isVisible(), SOON).toBe(false);
  expect(await policy()).toContain('"account-read";q=700;');
  await expect
    .poll(() => bucket.textContent(), SOON)
    .toMatch(/of 700 points left.*Live limit.*launch \(alice\)/);

  await page.keyboard.press('Escape');
  await expect
    .poll(() => page.locator('#live-limits tbody').textContent(), SOON)
    .toMatch(/account-read700.*launch by alice/);
  await page.locator('#live-limits').getByRole('button', { name: 'Remove' }).click();
  await dialog.getByLabel('Why').fill('over');
  await dialog.getByRole('button', { name: 'Remove the limit' }).click();
  await expect.poll(policy, SOON).toContain('"account-read";q=20;');
  await expect
    .poll(() => page.locator('#live-limits').textContent(), SOON)
    .toContain('None: the files apply');
  expect(messages).toEqual([]);
});

it('a live limit on requests in flight is of requests, not of points', async () => {
  const limits = { limits: { exports: { per: 'account', concurrent: 4 } } };
  const { page } = await open(await start({ limits }), { path: '/#/account/acct_1' });
  await page.locator('[data-bucket=exports]').getByRole('button', { name: 'Set a live limit…' }).click();
  const dialog = page.locator('#dialog');
  await dialog.getByLabel('Requests at a time').fill('9');
  expect(await dialog.locator('.sentence').textContent()).toBe(
    'exports of acct_1: 9 requests at a time instead of 4, at every replica, for 1\u00a0h.',
  );
});

it("a Person's own limit is raised on its page", async () => {
  const gateway = await start();
  const policy = async () =>
    (await gateway.send('GET', '/v3/mfa-factors', { token: 'person' })).headers.get('RateLimit-Policy');
  expect(await policy()).toContain('"account-read";q=10;');
  const { page, messages } = await open(gateway, { path: '/#/person/person_1' });
  const bucket = page.locator('[data-bucket=person-read]');
  await bucket.getByRole('button', { name: 'Set a live limit…' }).click();
  const dialog = page.locator('#dialog');
  await dialog.getByLabel('Points per window').fill('700');
  await dialog.getByLabel('Your name').fill('alice');
  await dialog.getByLabel('Why').fill('audit');
  await dialog.getByRole('button', { name: 'Set the limit' }).click();
  await expect.poll(policy, SOON).toContain('"account-read";q=700;');
  await bucket.getByRole('button', { name: 'Remove…' }).click();
  await dialog.getByLabel('Why').fill('over');
  await dialog.getByRole('button', { name: 'Remove the limit' }).click();
  await expect.poll(policy, SOON).toContain('"account-read";q=10;');
  expect(messages).toEqual([]);
});

it('a limit that is refused leaves the reason in the dialog', async () => {
  const gateway = await start();
  const { page } = await open(gateway, { path: '/#/account/acct_1' });
  await page.locator('[data-bucket=account-read]').getByRole('button', { name: 'Set a live limit…' }).click();
  const dialog = page.locator('#dialog');
  await dialog.getByLabel('Points per window').fill('3');
  await dialog.getByLabel('Why').fill('mistake');
  await dialog.getByLabel('Your name').fill('alice');
  await dialog.getByRole('button', { name: 'Set the limit' }).click();
  await expect.poll(() => dialog.locator('.problem').textContent(), SOON).toContain('below the cost 10');
  await page.keyboard.press('Escape');
  expect(await dialog.isVisible()).toBe(false);
  expect(new URL(page.url()).hash).toBe('#/account/acct_1');
});

it('an Account that is blocked on the page is refused, until it is unblocked', async () => {
  const gateway = await start();
  const status = async () => (await gateway.send('GET', '/v3/things')).status;
  const { page, messages } = await open(gateway, { path: '/#/account/acct_1' });
  await page.getByRole('button', { name: 'Block…' }).click();
  const dialog = page.locator('#dialog');
  expect(await dialog.locator('.sentence').textContent()).toBe(
    'Every request of account acct_1 gets a 429 at every replica, for 1\u00a0h.',
  );
  await dialog.getByLabel('Why').fill('leak');
  await dialog.getByLabel('Your name').fill('alice');
  await dialog.getByRole('button', { name: 'Block the account' }).click();
  await expect.poll(status, SOON).toBe(429);
  const line = page.locator('.blocks');
  await expect
    .poll(() => line.textContent(), SOON)
    .toMatch(/account acct_1 is blocked until.*: leak \(alice\)/);
  await page.keyboard.press('Escape');
  const row = page.locator('#live-limits tbody tr');
  await expect.poll(() => row.textContent(), SOON).toMatch(/acct_1blocked0.*leak by alice/);
  await row.getByRole('button', { name: 'Unblock' }).press('Enter');
  await dialog.getByLabel('Why').fill('found');
  await dialog.getByRole('button', { name: 'Unblock' }).click();
  await expect.poll(status, SOON).toBe(200);
  await expect.poll(() => row.count(), SOON).toBe(0);
  expect(messages).toEqual([]);
});

it('a principal that is revoked on the page is refused, until it is undone', async () => {
  const gateway = await start();
  const status = async () => (await gateway.send('GET', '/v3/things')).status;
  expect(await status()).toBe(200);
  const { page, messages } = await open(gateway);
  await page.locator('#revocations').getByRole('button', { name: 'Revoke…' }).click();
  const dialog = page.locator('#dialog');
  await dialog.getByLabel('Principal or token').fill('svc_1');
  await dialog.getByLabel('Why').fill('leaked');
  await dialog.getByLabel('Your name').fill('alice');
  await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
  await expect.poll(status, SOON).toBe(401);
  const row = page.locator('#revocations tbody tr');
  await expect.poll(() => row.textContent(), SOON).toMatch(/svc_1principal.*leaked by alice/);
  await row.getByRole('button', { name: 'Undo' }).press('Enter');
  await dialog.getByLabel('Why').fill('found');
  await dialog.getByRole('button', { name: 'Undo the revocation' }).click();
  await expect.poll(status, SOON).toBe(200);
  await expect.poll(() => row.count(), SOON).toBe(0);
  expect(messages).toEqual([]);
});

it('a principal with the longest id is revoked, not the one that its first 200 characters name', async () => {
  const { page } = await open(await start());
  await page.locator('#revocations').getByRole('button', { name: 'Revoke…' }).click();
  const target = page.locator('#dialog').getByLabel('Principal or token');
  const long = 'p'.repeat(256);
  await target.pressSequentially(long, { delay: 0 });
  expect(await target.inputValue()).toBe(long);
});

it('the token opens the console of a replica that has not read Redis yet', async () => {
  const store = { kind: 'redis', url: 'redis://127.0.0.1:1', keyPrefix: 'away' };
  const gateway = await start({ store, settings: { admin: { host: '127.0.0.1', port: 0, token: TOKEN } } });
  const { page } = await open(gateway);
  await page.locator('#dialog').getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.locator('#overview').waitFor();
  await expect
    .poll(() => page.locator('#headline').textContent(), SOON)
    .toContain('The store does not answer');
});

it('asks for the admin token, and keeps it in the tab alone', async () => {
  const gateway = await start({ settings: { admin: { host: '127.0.0.1', port: 0, token: TOKEN } } });
  const { page } = await open(gateway);
  const dialog = page.locator('#dialog');
  await dialog.getByLabel('Token').fill('wrong');
  await dialog.getByRole('button', { name: 'Open the console' }).click();
  await expect
    .poll(() => dialog.locator('.problem').textContent(), SOON)
    .toContain('The admin token is wrong');
  expect(await page.locator('#overview').isVisible()).toBe(false);
  await dialog.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.locator('#overview').waitFor();
  await page.reload();
  await page.locator('#overview').waitFor();
  expect(await page.evaluate('JSON.stringify(localStorage) + document.cookie + location.href')).not.toContain(
    TOKEN,
  );
});

it('refuses a token that no browser can send, and keeps it nowhere', async () => {
  const gateway = await start({ settings: { admin: { host: '127.0.0.1', port: 0, token: TOKEN } } });
  const { page } = await open(gateway);
  const dialog = page.locator('#dialog');
  await dialog.getByLabel('Token').fill('“a-token-of-admins”');
  await page.keyboard.press('Enter');
  await expect.poll(() => dialog.locator('.problem').textContent(), SOON).toContain('Copy the token again.');
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
  await page.reload();
  await dialog.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.locator('#overview').waitFor();
});

it('an action that is answered late neither closes the next dialog nor hides why it failed', async () => {
  const { page } = await open(await start(), { path: '/#/account/acct_1' });
  const dialog = page.locator('#dialog');
  const answers: ((status: number) => void)[] = [];
  await page.route('**/limits/live/accounts/acct_1', async (route) => {
    const status = await new Promise<number>((answer) => void answers.push(answer));
    const set = [{ limit: 700, until: '2099-01-01T00:00:00Z' }];
    const answer = status === 200 ? set : { error: 'Redis does not answer.' };
    await route.fulfill({ status, json: answer });
  });
  const opened = async () => {
    const bucket = page.locator('[data-bucket=account-read]');
    await bucket.getByRole('button', { name: 'Set a live limit…' }).click();
    await dialog.getByLabel('Points per window').fill('700');
    await dialog.getByLabel('Your name').fill('alice');
    await dialog.getByLabel('Why').fill('launch');
  };
  for (const [index, [status, notice]] of (
    [
      [503, 'Redis does not answer.'],
      [200, 'account-read of acct_1 is 700'],
    ] as const
  ).entries()) {
    await opened();
    await dialog.getByRole('button', { name: 'Set the limit' }).click();
    await expect.poll(() => answers.length, SOON).toBe(index + 1);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await expect.poll(() => dialog.isVisible(), SOON).toBe(false);
    await opened();
    answers.at(-1)?.(status);
    await expect.poll(() => page.locator('#notice').textContent(), SOON).toContain(notice);
    expect(await dialog.isVisible()).toBe(true);
    expect(await dialog.getByLabel('Why').inputValue()).toBe('launch');
    expect(await dialog.locator('.problem').isVisible()).toBe(false);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  }
});

it('says what to set where the admin port is open to others and has no token', async () => {
  const gateway = await start({ settings: { admin: { host: '0.0.0.0', port: 0 } } });
  const { page } = await open(gateway);
  await expect.poll(() => page.locator('#notice').textContent(), SOON).toContain('Set admin.tokenFile');
  expect(await page.locator('#overview').isVisible()).toBe(false);
});
