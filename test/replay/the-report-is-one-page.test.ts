import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { contrast, startChromium } from '../fixtures/chromium.ts';
import { type LoggedRequest, logText, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

/** Bursts of two Accounts for ten minutes, and one quiet Account whose name tries to be a script. */
const REQUESTS: readonly LoggedRequest[] = Array.from({ length: 600 }, (_, second) => [
  ...burst(second * 1_000, 4 + (second % 7), 'acct_busy'),
  ...burst(second * 1_000, 2, 'acct_calm'),
  ...burst(second * 1_000, second % 60 === 0 ? 1 : 0, '</script><b>acct_quiet'),
]).flat();

function burst(startMs: number, length: number, account: string): LoggedRequest[] {
  return Array.from({ length }, (_, index) => ({ atMs: startMs + index, account, organization: 'org_1' }));
}

let browser: Browser;
let report: string;
beforeAll(async () => {
  report = await write('defaults: { account-read: 8 }\n');
  browser = await startChromium();
});
afterAll(() => browser?.close());

/** Replays the bursts, or another log, with these limits. @returns the path of the report */
async function write(limits: string, log = logText(REQUESTS), ...flags: string[]): Promise<string> {
  const files = await writeFiles({ 'access.log': log, 'limits.yaml': limits });
  const path = join(files['access.log'], '..', 'report.html');
  const args = [files['access.log'], '--limits', files['limits.yaml'], '--report', path, ...flags];
  const { code, stderr } = await runReplayCommand(...args);
  expect(code, stderr).toBe(0);
  return path;
}

/** Opens the report; every request that it makes and every message that it logs is noted. */
async function open(options: {
  width: number;
  colorScheme: 'light' | 'dark';
}): Promise<{ page: Page; noted: string[] }> {
  const { width, colorScheme } = options;
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const noted: string[] = [];
  page.on('console', (message) => noted.push(message.text()));
  page.on('pageerror', (error) => noted.push(String(error)));
  page.on('request', (request) => noted.push(request.url()));
  await page.goto(pathToFileURL(report).href);
  return { page, noted };
}

it('loads no other resource, and has no link to another host', async () => {
  const { page, noted } = await open({ width: 1280, colorScheme: 'light' });
  expect(noted).toEqual([pathToFileURL(report).href]);
  expect((await readFile(report, 'utf8')).replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(
    /https?:\/\//,
  );
  await page.close();
});

it('shows the totals, the charts with the limit, and the most affected bucket', async () => {
  const { page } = await open({ width: 1280, colorScheme: 'light' });
  expect(await page.locator('h1').textContent()).toMatch(/would have refused \d/);
  expect(await page.locator('#detail-title').textContent()).toBe('acct_busy account-read');
  for (const chart of ['#traffic', '#traffic-share', '#fullest', '#share', '#windows']) {
    expect(await page.locator(`${chart} svg`).count(), chart).toBe(1);
  }
  expect(await page.locator('#fullest .limit-label').textContent()).toBe('limit 8');
  expect(await page.locator('#windows rect.over').count()).toBeGreaterThan(0);
  const { x, y, width, height } = (await page.locator('#fullest').boundingBox()) ?? {
    x: 0,
    y: 0,
    width: 0,
    height: 0,
  };
  await page.mouse.move(x + width / 2, y + height / 2);
  expect(await page.locator('#tip').textContent()).toContain('fullest window: 10');
  await page.close();
});

it.each([
  { everyMs: 250, unit: 'second' },
  { everyMs: 1_800_000, unit: 'hour' },
  { everyMs: 3 * 86_400_000, unit: 'day' },
])('counts requests by a time in which there are some: per $unit', async ({ everyMs, unit }) => {
  const requests = Array.from({ length: 500 }, (_, index) => ({ atMs: index * everyMs }));
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(pathToFileURL(await write('{}', logText(requests))).href);
  expect(await page.locator('#traffic-unit').textContent()).toBe(`Requests per ${unit}`);
  const numbers = (await page.locator('#traffic .grid text').allTextContents()).map(Number);
  expect(numbers.length).toBeGreaterThan(2);
  const [, step = 0] = numbers;
  expect(numbers).toEqual(numbers.map((_, index) => expect.closeTo(index * step, 6)));
  expect(step).toBeGreaterThan(0);
  await page.close();
});

it('has its lines at the numbers of windows that they name', async () => {
  // Ten windows of one request, and hundreds without any.
  const requests = Array.from({ length: 10 }, (_, index) => ({ atMs: index * 60_000 }));
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(pathToFileURL(await write('{}', logText(requests))).href);
  const chart = page.locator('#windows');
  const labels = await chart.locator('.grid text').allTextContents();
  const lines = await chart
    .locator('.grid line')
    .evaluateAll((all) => all.map((one) => Number(one.getAttribute('y1'))));
  const tops = await chart
    .locator('rect')
    .evaluateAll((all) => all.map((one) => Number(one.getAttribute('y'))));
  expect(labels).toContain('10');
  expect(tops.map((top) => Math.abs(top - (lines[labels.indexOf('10')] ?? 0)))).toContainEqual(
    expect.closeTo(0, -0.3),
  );
  await page.close();
});

it('finds a bucket by its id and shows it when it is chosen', async () => {
  const { page } = await open({ width: 1280, colorScheme: 'light' });
  const rows = page.locator('#buckets tbody tr');
  expect(await rows.count()).toBe(4);
  await page.locator('#search').fill('QUIET');
  expect(await rows.count()).toBe(1);
  await rows.first().click();
  expect(await page.locator('#detail-title').textContent()).toBe('</script><b>acct_quiet account-read');
  await page.locator('#search').fill('nobody');
  expect(await page.locator('#none').isVisible()).toBe(true);
  await page.locator('#search').fill('');
  await page.locator('#kind').selectOption('organization-read');
  expect(await rows.count()).toBe(1);
  await page.close();
});

it('shows a limit with its own unit and window, whole, and what its worst hour had', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const path = await write('limits: { hour: { per: account, requests: 100000, window: 1h } }\n');
  await page.goto(pathToFileURL(path).href);
  await page.locator('#kind').selectOption('hour');
  await page.locator('#search').fill('busy');
  await page.locator('#buckets tbody tr').click();
  const facts = await page.locator('#facts').textContent();
  expect(facts).toMatch(/Limit100,000requests per hour/);
  expect(facts).toMatch(/Worst hour\d\d-\d\d \d\d:\d\d[\d,]+ requests/);
  const label = page.locator('#fullest .limit-label');
  expect(await label.textContent()).toContain('above this chart');
  const [text, chart] = await Promise.all([label.boundingBox(), page.locator('#fullest svg').boundingBox()]);
  expect(text?.y).toBeGreaterThanOrEqual(chart?.y ?? Number.NaN);
  await page.close();
});

/** A second in which 40 requests were admitted and 60 refused. */
const REFUSALS = logText(
  Array.from({ length: 100 }, (_, index) => ({
    atMs: index,
    more: index < 40 ? {} : { outcome: 'denied', status: 429, bucket: 'account-read' },
  })),
);

it.each([
  { retries: 'drop', figures: [/^60\s%$/, /^75\s%$/], at: 0.5, tip: /before: 60\s%after: 75\s%$/ },
  // 30 requests are sent again in the next second, in which the log has none.
  { retries: 'after', figures: [/^60\s%$/, /^60\s%$/], at: 0.375, tip: /before: 0\s%after: 66\.67\s%$/ },
])('divides the shares of the charts like the figures, with --retries $retries', async (expected) => {
  const { retries, figures, at, tip } = expected;
  const path = await write('defaults: { account-read: 10 }\n', REFUSALS, '--retries', retries);
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(pathToFileURL(path).href);
  const shown = page.locator('.figure', { hasText: /^Refused/ }).locator('.value');
  expect(await shown.allTextContents()).toEqual(figures.map((figure) => expect.stringMatching(figure)));
  for (const chart of ['#traffic-share', '#share']) {
    await page.locator(chart).scrollIntoViewIfNeeded();
    const box = await page.locator(chart).boundingBox();
    if (box === null) throw new Error(`${chart} is not drawn`);
    await page.mouse.move(box.x + box.width * at, box.y + box.height / 2);
    expect(await page.locator('#tip').textContent(), chart).toMatch(tip);
  }
  await page.close();
});

it.each([
  { retries: 'none', headline: /^These limits would have changed nothing$/ },
  // No request has another outcome, but what the log shows as refused is left out.
  { retries: 'drop', headline: /have refused 0\s% of the requests instead of 60\s%$/ },
])('its headline agrees with its figures, with --retries $retries', async ({ retries, headline }) => {
  const path = await write('defaults: { account-read: 40 }\n', REFUSALS, '--retries', retries);
  const page = await browser.newPage();
  await page.goto(pathToFileURL(path).href);
  expect(await page.locator('h1').textContent()).toMatch(headline);
  await page.close();
});

it('keeps the last column of the table away from the edge on a phone', async () => {
  const { page } = await open({ width: 390, colorScheme: 'light' });
  const paddings = await page.evaluate<string[]>(
    "[...document.querySelectorAll('#buckets tbody tr:first-child td')].filter((cell) => cell.offsetParent).map((cell) => getComputedStyle(cell).paddingRight)",
  );
  expect(paddings.at(-1)).toBe('14px');
  await page.close();
});

it('sorts by a column, up and down', async () => {
  const { page } = await open({ width: 1280, colorScheme: 'light' });
  const ids = () => page.locator('#buckets tbody td.id').allTextContents();
  await page.locator('#buckets th button', { hasText: 'Requests' }).click();
  const down = await ids();
  expect(down[0]).toBe('org_1organization-read');
  await page.locator('#buckets th button', { hasText: 'Requests' }).click();
  expect(await ids()).toEqual(down.toReversed());
  await page.close();
});

it.each(['light', 'dark'] as const)(
  'has no sideways scroll at 360 px and readable contrast in %s',
  async (colorScheme) => {
    const { page } = await open({ width: 360, colorScheme });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    const color = (property: string) => page.evaluate<string>(`getComputedStyle(document.body).${property}`);
    const background = await color('backgroundColor');
    expect(contrast(await color('color'), background)).toBeGreaterThan(7);
    await page.locator('#theme').click();
    expect(await color('backgroundColor')).not.toBe(background);
    expect(contrast(await color('color'), await color('backgroundColor'))).toBeGreaterThan(7);
    await page.close();
  },
);
