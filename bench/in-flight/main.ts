/**
 * `npx tsx bench/in-flight/main.ts`, with a fresh build: what a limit on requests in flight costs the gateway and Redis besides two
 * buckets, with the releases and renewals that it causes. Two gateways on one core, each with a Redis of its own, take turns of a
 * second; then two others, because two processes that do the same differ by some percent. `--quick` takes fewer, and writes nothing.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import { chooseCores, provenance } from '../lab/machine.ts';
import { cpuUs } from '../lab/process-table.ts';
import { type Service, startRedis, startUpstream } from '../load/upstream.ts';
import { wrk } from '../load/wrk.ts';
import { CONNECTIONS, FAR_ABOVE, sceneOf } from '../measure/bench.ts';
import { median } from '../measure/lineup.ts';
import { publishSection } from '../report/section.ts';

const isQuick = process.argv.includes('--quick');
const PAIRS = isQuick ? 2 : 6;
const TURNS = isQuick ? 5 : 10;
const WARM_UP_SECONDS = isQuick ? 2 : 4;
/** Each request in flight is of another Account, or all are of a few. */
const ACCOUNTS = [1_000, 10];
/** So long that every charge is counted, even beside other work. */
const DEADLINE_MS = 1_000;
const CONCURRENT = { 'account-in-flight': { per: 'account', concurrent: 1_000 } };
/** At most so much more than without the row: the aims of docs/limits.md. */
const MOST = { gateway: 1.1, redis: 1.6 };

/** One gateway and its Redis. */
interface Side {
  readonly gateway: Running;
  readonly redis: Service;
}

/** CPU of a request in each turn, in microseconds. */
interface Figures {
  readonly gateway: number[];
  readonly redis: number[];
}

const cores = chooseCores();
const parent = mkdtempSync(join(tmpdir(), 'weir-in-flight-'));
const upstream = await startUpstream(parent, cores?.load);
const rows: string[] = [];
let isMissed = false;
try {
  for (const accounts of ACCOUNTS) rows.push(...(await compare(accounts)));
} finally {
  await upstream.stop();
  rmSync(parent, { recursive: true });
}

async function compare(accounts: number): Promise<readonly string[]> {
  const figures = [noFigures(), noFigures()] as const;
  for (let pair = 0; pair < PAIRS; pair++) {
    const sides = [await startSide(accounts), await startSide(accounts, CONCURRENT)] as const;
    try {
      await takeTurns(sides, accounts, figures);
    } finally {
      for (const { gateway, redis } of sides) {
        await gateway.stop();
        await redis.stop();
      }
    }
  }
  return (['gateway', 'redis'] as const).map((part) => rowOf(part, accounts, ...figures));
}

async function takeTurns(
  sides: readonly [Side, Side],
  accounts: number,
  figures: readonly [Figures, Figures],
): Promise<void> {
  for (const side of sides) await load(side, accounts, WARM_UP_SECONDS);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const index of turn % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      await measure(sides[index], accounts, figures[index]);
    }
  }
}

function noFigures(): Figures {
  return { gateway: [], redis: [] };
}

async function startSide(accounts: number, limits?: Readonly<Record<string, object>>): Promise<Side> {
  const redis = await startRedis(cores?.load);
  const name = limits === undefined ? 'without' : 'with';
  const scene = sceneOf({ folder: parent, cores, upstream, redis }, { name, limit: FAR_ABOVE, accounts });
  const gateway = await weir('redis', { limits, settings: { store: { deadlineMs: DEADLINE_MS } } }).start(
    scene,
  );
  return { gateway, redis };
}

async function load({ gateway: { port } }: Side, accounts: number, seconds: number): Promise<number> {
  const { requests, refused, failed } = await wrk({
    ...{ port, seconds, accounts, connections: CONNECTIONS, cores: cores?.load },
  });
  if (refused + failed > 0) throw new Error(`${refused} requests were refused, and ${failed} failed`);
  return requests;
}

async function measure(side: Side, accounts: number, figures: Figures): Promise<void> {
  const { gateway, redis } = side;
  const before = [cpuUs(gateway.pids), cpuUs([redis.pid])] as const;
  const requests = await load(side, accounts, 1);
  figures.gateway.push((cpuUs(gateway.pids) - before[0]) / requests);
  figures.redis.push((cpuUs([redis.pid]) - before[1]) / requests);
}

function rowOf(part: keyof typeof MOST, accounts: number, without: Figures, with_: Figures): string {
  const [allBefore, allAfter] = [without[part], with_[part]];
  const [before, after] = [median(allBefore), median(allAfter)];
  // Of neighbouring seconds, because a busy machine changes its pace.
  const ratio = median(allBefore.map((us, turn) => (allAfter[turn] ?? Number.NaN) / us));
  if (ratio > MOST[part]) isMissed = true;
  const more = `${((ratio - 1) * 100).toFixed(0)} %`;
  const cells = [accounts.toLocaleString('en'), part, before.toFixed(1), after.toFixed(1), more];
  return `| ${cells.join(' | ')} | ${((MOST[part] - 1) * 100).toFixed(0)} % |`;
}

publishSection(
  'in-flight',
  [
    '## Requests in flight',
    '',
    `${provenance('npx tsx bench/in-flight/main.ts')}, machine load ${loadavg()[0]?.toFixed(1)}.`,
    `Forwarded requests on ${CONNECTIONS} connections, each charged to two buckets in Redis, and with or without a slot of a limit on requests in`,
    `flight. CPU of a request in microseconds: medians of ${PAIRS} pairs of processes, ${TURNS} seconds in turn each, and of the ratios of neighbouring seconds.`,
    '',
    '| Accounts | | two buckets | and a slot | more | aim: at most |',
    '|--:|---|--:|--:|--:|--:|',
    ...rows,
  ],
  isQuick,
);
if (isMissed) process.exitCode = 1;
