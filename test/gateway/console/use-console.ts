import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, vi } from 'vitest';
import { startChromium } from '../../fixtures/chromium.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { uniqueRedisStore } from '../../fixtures/redis-url.ts';

/** The machine may be busy with other work. */
export const SOON = { timeout: 40_000, interval: 100 };

export interface OpenedConsole {
  readonly page: Page;
  /** Every message of the page, errors and violations of its policy included. */
  readonly messages: string[];
  readonly hosts: Set<string>;
}

export interface ConsoleTools {
  /** A gateway that counts in Redis, until the test ends. */
  start(options?: Parameters<typeof startGateway>[0]): Promise<TestGateway>;
  newPage(options?: Parameters<Browser['newPage']>[0]): Promise<Page>;
  /** Opens the console of a gateway. */
  open(
    gateway: TestGateway,
    options?: { path?: string; width?: number; colorScheme?: 'light' | 'dark' },
  ): Promise<OpenedConsole>;
}

/** A Chromium for the tests of a file, and what they open in it. */
export function useConsole(): ConsoleTools {
  vi.setConfig({ testTimeout: 60_000 });
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  }, 120_000);
  afterAll(() => browser?.close());
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  const newPage: ConsoleTools['newPage'] = async (options) => {
    const page = await browser.newPage(options);
    closing.push(() => page.close());
    page.setDefaultTimeout(SOON.timeout);
    return page;
  };
  return {
    newPage,
    async start(options) {
      const store = uniqueRedisStore();
      const gateway = await startGateway({ store, ...options });
      closing.push(() => gateway.close());
      return gateway;
    },
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

/** Ranks what happened in the last ten minutes, so that nothing disappears while a test looks at it. */
export async function showTenMinutes(page: Page): Promise<void> {
  await page.locator('#overview').waitFor();
  await page.locator('#window input[value="10m"]').check();
}
