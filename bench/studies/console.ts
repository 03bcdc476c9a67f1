import { setTimeout } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { startChromium } from '../../test/fixtures/chromium.ts';
import { freePort } from '../../test/fixtures/free-port.ts';
import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench } from '../lab/bench.ts';
import { cpuUs } from '../lab/process-table.ts';
import { costOf, mean, moreOf, shownShare } from '../lab/turns.ts';
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

/** What a round saw: under load, and in the same time without requests. */
interface Round {
  readonly loadedUs: number;
  /** CPU time of the gateway, as a share of a core. */
  readonly atRest: number;
  readonly smoothness: Smoothness | undefined;
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
  const { closed = [] } = rounds;
  const rows = Object.entries(rounds).map(([name, seen]) => [
    name,
    ...costCells(seen, closed),
    ...pageCells(seen, bench.seconds),
  ]);
  return [
    `One gateway with Redis and its access log, ${REPLICAS} more replicas that publish, ${ACCOUNTS} active Accounts on each; ${bench.rounds} rounds in turn.`,
    `CPU of the gateway for a forwarded request under full load of ${bench.seconds} s, while the browser runs on the load generator's core; then without requests`,
    'for as long, which shows the work for the console alone. Means, and standard errors of the differences.',
    '',
    ...table(
      [
        'console',
        'under load, µs:',
        'more:',
        'without requests, of a core:',
        'more, of a core:',
        'frames/s:',
        'longest time between frames, ms:',
        'tasks over 50 ms:',
      ],
      rows,
    ),
  ];
}

async function measureRound(bench: Bench, gateway: Running, page: Page | undefined): Promise<Round> {
  const { gatewayUs } = await costOf(gateway, () => bench.load(gateway, { seconds: bench.seconds }));
  const [startUs, startMs] = [cpuUs(gateway.pids), performance.now()];
  const smoothness = await (page === undefined
    ? setTimeout(bench.seconds * 1_000, undefined)
    : watch(page, bench.seconds));
  const atRest = (cpuUs(gateway.pids) - startUs) / (performance.now() - startMs) / 1_000;
  await page?.close();
  return { loadedUs: gatewayUs, atRest, smoothness };
}

function costCells(seen: readonly Round[], closed: readonly Round[]): string[] {
  const [loaded, loadedClosed] = [loadedUs(seen), loadedUs(closed)];
  const [atRest, atRestClosed] = [sharesAtRest(seen), sharesAtRest(closed)];
  const isOpen = seen !== closed;
  return [
    mean(loaded).toFixed(1),
    isOpen ? shownShare(moreOf(loaded, loadedClosed)) : '–',
    `${(mean(atRest) * 100).toFixed(1)} %`,
    isOpen ? shownShare(moreOf(atRest, atRestClosed, [1])) : '–',
  ];
}

function loadedUs(rounds: readonly Round[]): number[] {
  return rounds.map((round) => round.loadedUs);
}

function sharesAtRest(rounds: readonly Round[]): number[] {
  return rounds.map((round) => round.atRest);
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

function pageCells(rounds: readonly Round[], seconds: number): string[] {
  const seen = rounds.flatMap(({ smoothness }) => smoothness ?? []);
  if (seen.length === 0) return ['–', '–', '–'];
  const frames = seen.reduce((sum, one) => sum + one.frames, 0) / (seen.length * seconds);
  const longTasks = seen.flatMap((one) => one.longTasks);
  return [
    frames.toFixed(0),
    Math.max(...seen.map((one) => one.longestFrameMs)).toFixed(0),
    longTasks.length === 0 ? '0' : `${longTasks.length} (at most ${Math.max(...longTasks).toFixed(0)} ms)`,
  ];
}
