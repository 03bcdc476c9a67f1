import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, vi } from 'vitest';
import type { FleetSnapshot } from '../../../src/admin/fleet/snapshot.ts';
import { startChromium } from '../../fixtures/chromium.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { type RedisServer, startRedisServer } from '../../fixtures/redis-server.ts';
import { uniquePrefix, uniqueRedisStore } from '../../fixtures/redis-url.ts';

/** The machine may be busy with other work. */
export const SOON = { timeout: 40_000, interval: 100 };

export interface OpenedConsole {
  readonly page: Page;
  /** Every message of the page, errors and violations of its policy included. */
  readonly messages: string[];
  readonly hosts: Set<string>;
}

export interface ConsoleTools {
  /** A gateway that counts in Redis. */
  start(options?: Parameters<typeof startGateway>[0]): Promise<TestGateway>;
  /** Three gateways that know of each other, with a Redis of their own. */
  startReplicas(): Promise<{
    redis: RedisServer;
    gateways: readonly [TestGateway, TestGateway, TestGateway];
  }>;
  newPage(options?: Parameters<Browser['newPage']>[0]): Promise<Page>;
  /** Opens the console of a gateway. */
  open(
    gateway: Pick<TestGateway, 'adminUrl'>,
    options?: { path?: string; width?: number; colorScheme?: 'light' | 'dark' },
  ): Promise<OpenedConsole>;
  /** Closes something else of the test. What was opened last is closed first. */
  atEnd(close: () => unknown): void;
}

/**
 * A Chromium for the tests of a file, and what they open in it.
 *
 * @param end what closes it: the end of each test, or the end of the file, where its tests run at the same time
 */
export function useConsole(end: 'test' | 'file' = 'test'): ConsoleTools {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  }, 120_000);
  afterAll(() => browser?.close());
  const closing: (() => unknown)[] = [];
  const closeAll = async () => {
    for (const close of closing.splice(0).reverse()) await close();
  };
  if (end === 'test') afterEach(closeAll);
  else afterAll(closeAll);
  const newPage: ConsoleTools['newPage'] = async (options) => {
    const page = await browser.newPage(options);
    closing.push(() => page.close());
    page.setDefaultTimeout(SOON.timeout);
    return page;
  };
  const start: ConsoleTools['start'] = async (options) => {
    const gateway = await startGateway({ store: uniqueRedisStore(), ...options });
    closing.push(() => gateway.close());
    return gateway;
  };
  return {
    newPage,
    start,
    async startReplicas() {
      const redis = await startRedisServer();
      closing.push(() => redis.stop());
      const store = { kind: 'redis', url: redis.url, keyPrefix: uniquePrefix() };
      const gateways = [await start({ store }), await start({ store }), await start({ store })] as const;
      await vi.waitUntil(async () => (await fleetOf(gateways[0])).replicas.length === 3, SOON);
      return { redis, gateways };
    },
    atEnd: (close) => void closing.push(close),
    async open({ adminUrl }, { path = '/', width = 1280, colorScheme = 'light' } = {}) {
      const page = await newPage({ viewport: { width, height: 900 }, colorScheme });
      const messages: string[] = [];
      const hosts = new Set<string>();
      page.on('console', (message) => messages.push(message.text()));
      page.on('pageerror', (error) => messages.push(String(error)));
      page.on('request', (request) => hosts.add(new URL(request.url()).host));
      await page.goto(`${adminUrl}${path}`);
      return { page, messages, hosts };
    },
  };
}

export const fleetOf = async ({ adminUrl }: Pick<TestGateway, 'adminUrl'>) =>
  (await (await fetch(`${adminUrl}/fleet`)).json()) as FleetSnapshot;

export const headlineOf = (page: Page) => page.locator('#headline').textContent();

/** Ranks what happened in the last ten minutes, so that nothing disappears while a test looks at it. */
export async function showTenMinutes(page: Page): Promise<void> {
  await page.locator('#overview').waitFor();
  await page.locator('#window input[value="10m"]').check();
}
