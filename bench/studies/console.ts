import { setTimeout } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { startChromium } from '../../test/fixtures/chromium.ts';
import { freePort } from '../../test/fixtures/free-port.ts';
import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench } from '../lab/bench.ts';
import { costOf, median } from '../lab/turns.ts';
import { table } from '../report/section.ts';
import { startReplicas } from './idle-replicas.ts';

/** Besides the gateway. */
const REPLICAS = 19;

/** What is open in the browser; undefined if nothing is. */
const VIEWS = [
  { name: 'closed', path: undefined },
  { name: 'open at the fleet', path: '' },
  { name: 'open at an Account', path: '/#/account/acct_1' },
] as const;

/** What a page saw of itself. A long task is one of more than 50 ms (W3C Long Tasks). */
interface Smoothness {
  readonly frames: number;
  /** The longest time between two frames. */
  readonly longestFrameMs: number;
  readonly longTasks: readonly number[];
}

/** One gateway serves requests, and 19 replicas only publish. Rounds with the console closed and open take turns. */
export async function measureConsole(bench: Bench): Promise<readonly string[]> {
  const adminPort = await freePort();
  const gateway = await bench.start(weir('redis', { settings: { admin: { port: adminPort } } }), 'weir');
  bench.endWith(startReplicas(`redis://127.0.0.1:${(await bench.redis()).port}`, REPLICAS, ACCOUNTS));
  const browser = await startChromium();
  bench.endWith({ stop: () => browser.close() });
  const measure = async ({ path }: (typeof VIEWS)[number]) => {
    const page =
      path === undefined ? undefined : await openPage(browser, `http://127.0.0.1:${adminPort}${path}`);
    return measureRound(bench, gateway, page);
  };
  await measure(VIEWS[0]);
  const rounds = await bench.inTurn(VIEWS, measure);
  const closedUs = median((rounds.closed ?? []).map(({ us }) => us));
  const rows = Object.entries(rounds).map(([name, seen]) => {
    const costs = seen.map(({ us }) => us);
    const more = `${((median(costs) / closedUs - 1) * 100).toFixed(1)} %`;
    const pages = seen.flatMap(({ smoothness }) => smoothness ?? []);
    const cells = pages.length === 0 ? ['–', '–', '–'] : smoothnessCells(pages, bench.seconds);
    return [name, median(costs).toFixed(1), Math.min(...costs).toFixed(1), more, ...cells];
  });
  const columns = ['CPU, µs, median:', 'least:', 'median beside closed:', 'frames/s:'];
  return [
    `One gateway with Redis and its access log, ${REPLICAS} more replicas that publish, ${ACCOUNTS} active Accounts on each; ${bench.rounds} rounds of ${bench.seconds} s in turn.`,
    'CPU of the gateway for a forwarded request under full load; then the page for as long, without that load.',
    '',
    ...table(['console', ...columns, 'longest time between frames, ms:', 'tasks over 50 ms:'], rows),
  ];
}

async function measureRound(bench: Bench, gateway: Running, page: Page | undefined) {
  const { gatewayUs } = await costOf(gateway, () => bench.load(gateway, { seconds: bench.seconds }));
  // The load program has the page's core while it runs, so the page is judged without it.
  const smoothness = page === undefined ? undefined : await watch(page, bench.seconds);
  await page?.close();
  return { us: gatewayUs, smoothness };
}

async function openPage(browser: Browser, url: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(url);
  await page.locator('main:not([hidden])').waitFor();
  await setTimeout(2_000);
  return page;
}

/** Watches frames and long tasks in the page. Its source is a string, because the page has no modules of this program. */
function watch(page: Page, seconds: number): Promise<Smoothness> {
  return page.evaluate(`new Promise((resolve) => {
    const longTasks = [];
    const observer = new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((one) => one.duration)));
    observer.observe({ type: 'longtask' });
    const endMs = performance.now() + ${seconds * 1_000};
    let frames = 0, longestFrameMs = 0, lastMs;
    const frame = (nowMs) => {
      if (lastMs !== undefined) longestFrameMs = Math.max(longestFrameMs, nowMs - lastMs);
      lastMs = nowMs;
      frames += 1;
      if (nowMs < endMs) requestAnimationFrame(frame);
      else { observer.disconnect(); resolve({ frames, longestFrameMs, longTasks }); }
    };
    requestAnimationFrame(frame);
  })`);
}

function smoothnessCells(seen: readonly Smoothness[], seconds: number): string[] {
  const frames = seen.reduce((sum, one) => sum + one.frames, 0) / (seen.length * seconds);
  const longTasks = seen.flatMap((one) => one.longTasks);
  return [
    frames.toFixed(0),
    Math.max(...seen.map((one) => one.longestFrameMs)).toFixed(0),
    longTasks.length === 0 ? '0' : `${longTasks.length} (at most ${Math.max(...longTasks).toFixed(0)} ms)`,
  ];
}
