/** `npm run screenshots`: writes the pictures of docs/console.md from a fleet under traffic. */
import { setTimeout } from 'node:timers/promises';
import { startChromium } from '../../fixtures/chromium.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { startBusyFleet } from './busy-fleet.ts';

interface Picture {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly colorScheme: 'light' | 'dark';
  readonly path?: string;
}

const PICTURES: readonly Picture[] = [
  { name: 'light', width: 1280, height: 960, colorScheme: 'light' },
  { name: 'dark', width: 1280, height: 960, colorScheme: 'dark' },
  { name: 'account', width: 1200, height: 760, colorScheme: 'light', path: '/#/account/acct_northwind' },
  { name: 'operations', width: 1280, height: 720, colorScheme: 'light', path: '/#/operations' },
  { name: 'narrow', width: 360, height: 760, colorScheme: 'light' },
];

/** The charts show a minute. */
const TRAFFIC_MS = 75_000;

const redis = await startRedisServer();
const fleet = await startBusyFleet(redis.url, 3);
const [{ adminUrl } = { adminUrl: '' }] = fleet.gateways;
await fetch(`${adminUrl}/limits/live/accounts/acct_contoso`, {
  method: 'PUT',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ 'account-read': 800, for: '2h', why: 'launch of the new app', by: 'alice' }),
});
const browser = await startChromium();
const pages = await Promise.all(
  PICTURES.map(async ({ width, height, colorScheme, path = '/' }) => {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme });
    await page.goto(adminUrl + path);
    return page;
  }),
);
await setTimeout(TRAFFIC_MS);
for (const [index, page] of pages.entries())
  await page.screenshot({ path: `docs/console-${PICTURES[index]?.name}.png` });
await browser.close();
await fleet.close();
await redis.stop();
