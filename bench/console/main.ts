/**
 * `npm run bench:console`: what the console costs the replica that serves it, and whether the page is smooth, with 20
 * replicas and 1,000 active Accounts on each. One gateway serves requests; the other replicas only publish. Rounds with the
 * console closed, open, and open at an Account alternate. A long task is one of more than 50 ms (W3C Long Tasks).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Command } from 'commander';
import type { Browser, Page } from 'playwright-core';
import { startChromium } from '../../test/fixtures/chromium.ts';
import { freePort } from '../../test/fixtures/free-port.ts';
import { startOnNode } from '../contestants/node-program.ts';
import { MAIN, writeConfiguration } from '../contestants/weir.ts';
import { chooseCores, provenance } from '../lab/machine.ts';
import { cpuUs } from '../lab/process-table.ts';
import { startRedis, startUpstream } from '../load/upstream.ts';
import { wrk } from '../load/wrk.ts';
import { ACCOUNTS, CONNECTIONS, FAR_ABOVE, sceneOf } from '../measure/bench.ts';
import { median } from '../measure/lineup.ts';
import { writeSection } from '../report/section.ts';
import { startReplicas } from './replicas.ts';

/** Besides the gateway. */
const REPLICAS = 19;

const VIEWS = ['closed', 'fleet', 'Account'] as const;
type View = (typeof VIEWS)[number];

/** What a page saw of itself. */
interface Smoothness {
  readonly frames: number;
  /** The longest time between two frames. */
  readonly longestFrameMs: number;
  readonly longTasks: readonly number[];
}

interface Round {
  readonly usPerRequest: number;
  readonly smoothness: Smoothness | undefined;
}

interface ConsoleOptions {
  readonly rounds: number;
  readonly seconds: number;
}

const say = (line: string): void => void process.stdout.write(`${line}\n`);

await new Command('bench:console')
  .description('Measures the cost of the console, and how smooth its page is.')
  .option('--rounds <n>', 'rounds of each view', Number, 8)
  .option('--seconds <n>', 'length of a round', Number, 8)
  .action(run)
  .parseAsync();

async function run(options: ConsoleOptions): Promise<void> {
  const load = loadavg()[0] ?? 0;
  const folder = mkdtempSync(join(tmpdir(), 'weir-bench-console-'));
  const cores = chooseCores();
  const upstream = await startUpstream(folder, cores?.load);
  const redis = await startRedis(cores?.load);
  const adminPort = await freePort();
  const terms = { name: 'weir', limit: FAR_ABOVE, accounts: ACCOUNTS };
  const scene = sceneOf({ folder, cores, upstream, redis }, terms);
  const weir = await startOnNode(scene, (port) => {
    const file = writeConfiguration(scene, { kind: 'redis', port, accessLog: true, adminPort });
    return [MAIN, 'start', '-c', file];
  });
  const replicas = startReplicas(`redis://127.0.0.1:${redis.port}`, REPLICAS, ACCOUNTS);
  const browser = await startChromium();
  const rounds: Record<View, Round[]> = { closed: [], fleet: [], Account: [] };
  try {
    const url = `http://127.0.0.1:${adminPort}`;
    const measured = { port: weir.port, pids: weir.pids, cores: cores?.load, seconds: options.seconds };
    await measureRound('closed', url, browser, measured);
    for (let round = 1; round <= options.rounds; round++) {
      for (const view of VIEWS) rounds[view].push(await measureRound(view, url, browser, measured));
      say(
        `round ${round} of ${options.rounds}: ${VIEWS.map((view) => `${view} ${rounds[view].at(-1)?.usPerRequest.toFixed(1)} µs`).join(', ')}`,
      );
    }
  } finally {
    await browser.close();
    await replicas.stop();
    for (const one of [weir, redis, upstream]) await one.stop();
    rmSync(folder, { recursive: true });
  }
  const section = sectionOf(rounds, options, load);
  writeSection('console', section);
  say(section);
}

interface Measured {
  readonly port: number;
  readonly pids: readonly number[];
  readonly cores: string | undefined;
  readonly seconds: number;
}

async function measureRound(
  view: View,
  url: string,
  browser: Browser,
  { port, pids, cores, seconds }: Measured,
): Promise<Round> {
  const page =
    view === 'closed'
      ? undefined
      : await openPage(browser, view === 'fleet' ? url : `${url}/#/account/acct_1`);
  const beforeUs = cpuUs(pids);
  const { requests } = await wrk({ port, seconds, connections: CONNECTIONS, accounts: ACCOUNTS, cores });
  const usPerRequest = (cpuUs(pids) - beforeUs) / requests;
  // The load program has the page's core while it runs, so the page is judged without it.
  const smoothness = page === undefined ? undefined : await watch(page, seconds);
  await page?.close();
  return { usPerRequest, smoothness };
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

function sectionOf(
  rounds: Readonly<Record<View, readonly Round[]>>,
  options: ConsoleOptions,
  load: number,
): string {
  const closed = median(rounds.closed.map(({ usPerRequest }) => usPerRequest));
  const rows = VIEWS.map((view) => {
    const costs = rounds[view].map(({ usPerRequest }) => usPerRequest);
    const seen = rounds[view].flatMap(({ smoothness }) => smoothness ?? []);
    const cells = [
      view === 'closed' ? 'closed' : `open at ${view === 'fleet' ? 'the fleet' : 'an Account'}`,
      median(costs).toFixed(1),
      Math.min(...costs).toFixed(1),
      `${((median(costs) / closed - 1) * 100).toFixed(1)} %`,
      ...(view === 'closed' ? ['–', '–', '–'] : smoothnessCells(seen, options.seconds)),
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '## The console',
    '',
    `${provenance('npm run bench:console')}, machine load ${load.toFixed(1)} before.`,
    `One gateway with Redis and its access log, ${REPLICAS} more replicas that publish, ${ACCOUNTS} active Accounts on each; ${options.rounds} rounds of ${options.seconds} s in turn.`,
    'CPU of the gateway for a forwarded request under full load; then the page for as long, without that load.',
    '',
    '| console | CPU, µs, median | least | median beside closed | frames/s | longest time between frames, ms | tasks over 50 ms |',
    '|---|--:|--:|--:|--:|--:|--:|',
    ...rows,
  ].join('\n');
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
