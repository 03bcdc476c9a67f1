import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { contrast } from '../../fixtures/chromium.ts';
import { LIMITS, WINDOW_SECONDS } from '../../fixtures/configuration.ts';
import type { TestGateway } from '../../fixtures/gateway.ts';
import { uniqueRedisStore } from '../../fixtures/redis-url.ts';
import { startUpstream } from '../../fixtures/upstream.ts';
import { SOON, showTenMinutes, useConsole } from './use-console.ts';

/** An id that runs a script wherever it is parsed as HTML. */
const HOSTILE = '<img/src=x/onerror=document.title="hacked">';

const { start, open } = useConsole();

/** The sum of a counter's series. */
async function counted(gateway: TestGateway, name: string, labels = ''): Promise<number> {
  const lines = (await gateway.metrics()).split('\n').filter((line) => line.startsWith(`${name}{`));
  return lines
    .filter((line) => line.includes(labels))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

it('shows the numbers of /metrics, and loads nothing from another host', async () => {
  const gateway = await start();
  const { page, messages, hosts } = await open(gateway);
  await page.locator('#connection[data-state=live]').waitFor();
  for (let round = 0; round < 12; round++) {
    await gateway.send('GET', '/v3/things');
    await gateway.send('GET', '/v3/reports', { token: 'lonely' });
  }
  const [requests, points, refused] = [
    await counted(gateway, 'weir_requests_total'),
    await counted(gateway, 'weir_points_charged_total'),
    await counted(gateway, 'weir_requests_total', 'outcome="denied"'),
  ];
  expect([requests, points, refused]).toEqual([24, 32, 10]);
  const facts = `${requests} requests and ${points} points since the replica started`;
  await expect.poll(() => page.locator('#facts').textContent(), SOON).toContain(facts);
  await showTenMinutes(page);
  const row = page.locator('#accounts tbody tr', { hasText: 'acct_3' });
  await expect.poll(() => row.locator('td').last().textContent(), SOON).toBe('10 · 83\u00a0%');
  expect(await row.locator('.sparkline .foot').getAttribute('d')).toMatch(/^M0 23H\d+$/);
  const reason = page.locator('#refusals tbody tr').first();
  expect(await reason.textContent()).toContain(
    '429 account-read Account acct_3 has used its 20 points per minute for reads',
  );
  const version = /weir_limits_info\{sha="(.{8})/.exec(await gateway.metrics())?.[1];
  expect(await page.locator('[data-tile=replicas]').textContent()).toContain(`1limits ${version}`);
  expect(await page.locator('#replicas tbody tr').count()).toBe(1);
  // The headline is about the last ten seconds.
  const refuse = () => gateway.send('GET', '/v3/reports', { token: 'lonely' });
  await expect
    .poll(() => refuse().then(() => page.locator('#headline').textContent()), SOON)
    .toMatch(/% of requests are refused/);
  expect(messages).toEqual([]);
  expect([...hosts]).toEqual([new URL(gateway.adminUrl).host]);
});

it('shows how many requests of an Account each replica has in flight', async () => {
  const ended = new AbortController();
  const upstream = await startUpstream((_, response) =>
    ended.signal.addEventListener('abort', () => response.end()),
  );
  const limits = { limits: { reports: { per: 'account', concurrent: 2, operations: ['reportRead'] } } };
  const gateway = await start({ upstream, limits, store: uniqueRedisStore() });
  const sent = gateway.send('GET', '/v3/reports');
  const { page } = await open(gateway, { path: '/#/account/acct_1' });
  const bucket = page.locator('[data-bucket=reports]');
  await expect
    .poll(() => bucket.textContent(), SOON)
    .toContain(`1 of 2 requests at a time left1 in flight (${hostname()}: 1)`);
  ended.abort();
  expect((await sent).status).toBe(200);
  await expect.poll(() => bucket.textContent(), SOON).toContain('0 in flight');
});

it('shows no limit that a reload has removed, and none of the Organization that an Account has left', async () => {
  const gateway = await start({ limits: { limits: { reports: { per: 'account', concurrent: 2 } } } });
  const { page } = await open(gateway, { path: '/#/account/acct_1' });
  const organization = page.locator('[data-bucket=organization-read] .id');
  await expect.poll(() => page.locator('[data-bucket=reports]').count(), SOON).toBe(1);
  await expect.poll(() => organization.allTextContents(), SOON).toEqual(['org_1']);
  const write = (name: string, content: object) =>
    writeFile(join(dirname(gateway.settingsFile), name), JSON.stringify(content));
  await write('limits.yaml', { windowSeconds: WINDOW_SECONDS, defaults: LIMITS });
  await write('identities.yaml', { accounts: { acct_1: { organization: 'org_2' } } });
  await expect.poll(() => page.locator('[data-bucket=reports]').count(), SOON).toBe(0);
  await expect.poll(() => organization.allTextContents(), SOON).toEqual(['org_2']);
  expect(await page.locator('[data-bucket=account-read] .id').allTextContents()).toEqual(['acct_1']);
});

it('shows whose requests wait for the upstream, since when, and who has its places', async () => {
  const ended = new AbortController();
  const upstream = await startUpstream((_, response) => {
    if (ended.signal.aborted) response.end();
    else ended.signal.addEventListener('abort', () => response.end());
  });
  const settings = { upstream: { url: upstream.url, connections: 2, queueTimeoutMs: 60_000 } };
  const gateway = await start({ upstream, settings, store: uniqueRedisStore() });
  const { page } = await open(gateway);
  await page.locator('#overview').waitFor();
  expect(await page.locator('#queues').isHidden()).toBe(true);
  const sent = [1, 2, 3].map(() => gateway.send('GET', '/v3/things'));
  const row = page.locator('#queues tbody tr');
  await expect
    .poll(() => row.locator('td').allTextContents(), SOON)
    .toEqual([
      'acct_1',
      '2',
      expect.stringMatching(/s$/),
      expect.stringMatching(/:/),
      '1',
      '/',
      hostname(),
      'acct_1 1 of 2',
    ]);
  ended.abort();
  expect((await Promise.all(sent)).map(({ status }) => status)).toEqual([200, 200, 200]);
  await expect.poll(() => page.locator('#queues').isHidden(), SOON).toBe(true);
});

it('an id is never parsed as HTML', async () => {
  const gateway = await start({
    identities: {
      tokens: { hostile: 'svc_h' },
      principals: { svc_h: { type: 'ServiceAccount', account: HOSTILE } },
      accounts: { [HOSTILE]: { organization: HOSTILE } },
    },
  });
  for (let round = 0; round < 3; round++) await gateway.send('GET', '/v3/reports', { token: 'hostile' });
  const { page, messages, hosts } = await open(gateway);
  await showTenMinutes(page);
  for (const panel of ['#accounts', '#organizations', '#refusals'])
    await expect.poll(() => page.locator(`${panel} a`).first().getAttribute('title'), SOON).toBe(HOSTILE);
  await page.locator('#accounts a').first().click();
  await expect.poll(() => page.locator('#owner h1').textContent(), SOON).toBe(`Account ${HOSTILE}`);
  await expect.poll(() => page.locator('.bucket .id').first().textContent(), SOON).toBe(HOSTILE);
  await expect.poll(() => page.locator('#owner tbody .reason').count(), SOON).toBe(1);
  await page.getByRole('button', { name: 'Set a live limit…' }).first().click();
  expect(await page.locator('.sentence').textContent()).toContain(HOSTILE);
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.title()).toBe(`${HOSTILE} · Weir`);
  expect(messages).toEqual([]);
  expect(hosts.size).toBe(1);
});

it('is used with the keyboard alone', async () => {
  const gateway = await start();
  const { page } = await open(gateway);
  await page.locator('#overview').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('acct_1');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('#owner h1').textContent(), SOON).toBe('Account acct_1');
  await page.locator('[data-bucket=account-read] button').first().waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#overview').waitFor();
  const chart = page.locator('#charts svg[role=img]').first();
  await chart.focus();
  await page.keyboard.press('ArrowLeft');
  expect(await page.locator('#charts figcaption').first().textContent()).toMatch(/1\u00a0s ago/);
  await page.locator('#order input').first().focus();
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('#order input[value=byRequests]').isChecked()).toBe(true);
});

it.each(['light', 'dark'] as const)('fits 360 px, and has readable contrast in %s', async (colorScheme) => {
  const gateway = await start();
  for (let round = 0; round < 25; round++) await gateway.send('GET', '/v3/things');
  const { page } = await open(gateway, { width: 360, colorScheme });
  await showTenMinutes(page);
  await page.locator('td .refused').first().waitFor();
  const width = () => page.evaluate('document.documentElement.scrollWidth');
  const contrastOf = async (selector: string) => {
    const color = (property: string, of: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${of}')).${property}`);
    return contrast(await color('color', selector), await color('backgroundColor', '.panel'));
  };
  expect(await width()).toBe(360);
  for (let theme = 0; theme < 2; theme++) {
    expect(await contrastOf('.tile .value')).toBeGreaterThan(7);
    for (const selector of ['.tile .muted', 'td .refused', '.icon.good', 'button.quiet'])
      expect(await contrastOf(selector), selector).toBeGreaterThan(4.5);
    await page.locator('#theme').click();
  }
  await page.goto(`${gateway.adminUrl}/#/account/acct_1`);
  await page.locator('[data-bucket=account-read]').waitFor();
  expect(await width()).toBe(360);
});
