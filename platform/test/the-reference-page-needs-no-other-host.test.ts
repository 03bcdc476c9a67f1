import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium } from '../../test/fixtures/chromium.ts';
import type { TestGateway } from '../../test/fixtures/gateway.ts';
import { quickest } from './fixtures/databases.ts';
import { startGatewayInFront } from './fixtures/gateway-in-front.ts';
import { usePlatform } from './fixtures/platform.ts';

const platform = usePlatform(quickest);
let gateway: TestGateway;
let browser: Browser;
beforeAll(async () => {
  gateway = await startGatewayInFront(platform.url);
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  await gateway?.close();
});

test('/v3/docs shows every operation and event in a browser, and loads nothing from another host', async () => {
  const page = await browser.newPage();
  const hosts = new Set<string>();
  const errors: string[] = [];
  page.on('response', (response) => hosts.add(new URL(response.url()).host));
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(`${gateway.url}/v3/docs`);
  await page
    .getByText('Opens a payable for payment')
    .first()
    .waitFor({ state: 'attached', timeout: 150_000 });
  const text = (await page.textContent('body')) ?? '';
  for (const part of ['Issues an API key', 'page[size]', 'The invoice was marked paid'])
    expect(text, part).toContain(part);
  expect(errors).toEqual([]);
  const own = new URL(gateway.url).host;
  expect([...hosts].filter((host) => host !== own && host !== '')).toEqual([]);
}, 180_000);

test('the document and the page need no token and cost nothing, through the gateway as well', async () => {
  for (const [path, type] of [
    ['/v3/openapi.yaml', 'application/yaml'],
    ['/v3/docs', 'text/html'],
    ['/v3/docs/redoc.js', 'text/javascript'],
  ]) {
    for (const url of [platform.url, gateway.url]) {
      const response = await fetch(url + path, { headers: { Authorization: 'Bearer of-nobody' } });
      const { headers, status } = response;
      const seen = [path, status, headers.get('content-type')?.split(';')[0], headers.get('RateLimit')];
      expect(seen, url).toEqual([path, 200, type, null]);
    }
  }
});
