import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import type { Store } from '../../src/store/store.ts';
import { freePort } from '../../test/fixtures/free-port.ts';
import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { type Program, startProgram } from '../lab/program.ts';
import { Crowds } from './crowds.ts';
import { ACCOUNTS, Fleet, IN_AN_HOUR, REPLICAS, WINDOW_SECONDS } from './fleet.ts';
import { type Ledger, ledgerOf, type Stream, streamsAtOnce } from './ledger.ts';
import { startDurableRedis, startFailover } from './redis.ts';

const UPSTREAM = fileURLToPath(new URL('./upstream-program.ts', import.meta.url));
/** In each process of them. */
export const CLIENTS = 250;
/** Something is killed so often in a run. */
export const KILLS = 9;
/** A stream takes 5 s on average. */
const LONGEST_STREAM_MS = 15_000;

export interface Terms {
  readonly name: string;
  readonly kills: readonly ('a client' | 'a replica' | 'Redis')[];
  /** A killed primary is followed by a replica. Otherwise it starts again with what its disk has. */
  readonly failsOver: boolean;
}

export interface Run {
  readonly name: string;
  readonly failsOver: boolean;
  readonly kills: readonly { readonly seconds: number; readonly killed: string }[];
  readonly ledger: Ledger;
  readonly streams: { readonly usual: number; readonly most: number };
  /** By the counts of Redis of the last hour, when every stream had ended. */
  readonly countedPoints: number;
  /** Points that still counted in a window that had no requests. */
  readonly pointsLeft: number;
}

/** What is killed, by name. */
type Killers = Readonly<Record<string, (turn: number) => Promise<unknown>>>;

/** One run of Weir. Each Account has `limit` points in a window. */
export async function runWeir(bench: Bench, terms: Terms, crowds: number, limit: number): Promise<Run> {
  const folder = join(bench.folder, terms.name.replaceAll(/\W+/g, '-'));
  mkdirSync(folder);
  const upstream = await startUpstream(folder);
  const redis = bench.endWith(await (terms.failsOver ? startFailover() : startDurableRedis()));
  const fleet = bench.endWith(await Fleet.start(folder, limit, upstream.port, redis.settings));
  const clients = new Crowds(folder, fleet.ports, crowds, {
    clients: CLIENTS,
    accounts: ACCOUNTS,
    seconds: bench.seconds,
  });
  const kills = await killInTurn(bench, terms.kills, {
    'a client': () => clients.kill(),
    'a replica': (turn) => fleet.kill(turn % REPLICAS),
    Redis: () => redis.kill(),
  });
  await clients.ended();
  await untilQuiet(() => fleet.lines.length);
  const counts = await countsOf(redis.settings, limit);
  await fleet.stop();
  await redis.stop();
  await upstream.program.stop();
  const streams = upstream.streams();
  const ledger = ledgerOf(fleet.lines, streams, clients.unanswered(), limit, 1_000 * WINDOW_SECONDS);
  const { name, failsOver } = terms;
  return { name, failsOver, kills, ledger, streams: streamsAtOnce(streams), ...counts };
}

export async function startUpstream(folder: string) {
  const [port, file] = [await freePort(), join(folder, 'streams.ndjson')];
  const args = ['--import', 'tsx', UPSTREAM, `${port}`, file];
  const program: Program = await startProgram({ command: process.execPath, args, cores: undefined, port });
  const streams = (): Stream[] =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return { port, program, streams };
}

/** Kills the kinds in turn, at equal times of the load. */
export async function killInTurn(bench: Bench, kinds: readonly string[], killers: Killers) {
  const startMs = Date.now();
  const kills: { seconds: number; killed: string }[] = [];
  for (let turn = 0; kinds.length > 0 && turn < KILLS; turn++) {
    const dueMs = startMs + ((turn + 1) * 1_000 * bench.seconds) / (KILLS + 1);
    await setTimeout(Math.max(0, dueMs - Date.now()));
    const killed = kinds[turn % kinds.length] ?? '';
    const seconds = (Date.now() - startMs) / 1_000;
    kills.push({ seconds, killed });
    bench.say(`  ${seconds.toFixed(0)} s: kills ${killed}`);
    await killers[killed]?.(Math.floor(turn / kinds.length));
  }
  return kills;
}

/** Until nothing has ended for as long as a stream may take. */
export async function untilQuiet(ended: () => number): Promise<void> {
  for (let before = -1; ended() > before; ) {
    before = ended();
    await setTimeout(LONGEST_STREAM_MS);
  }
}

async function countsOf(settings: RemoteStoreSettings, limit: number) {
  const store = openStore(settings);
  const countedPoints = await pointsOf(store, 'tokens-hour', IN_AN_HOUR, 3_600);
  const pointsLeft = await pointsOf(store, 'tokens', limit, WINDOW_SECONDS);
  await store.close();
  return { countedPoints, pointsLeft };
}

/** The points that count now, of all Accounts together. */
async function pointsOf(store: Store, name: string, limit: number, windowSeconds: number): Promise<number> {
  let points = 0;
  for (let account = 1; account <= ACCOUNTS; account++) {
    const organization = `org_${Math.ceil(account / ACCOUNTS_PER_ORGANIZATION)}`;
    const key = bucketKey('weir', organization, name, `acct_${account}`);
    const peek = () => store.peek({ buckets: [{ key, limit, windowSeconds }], cost: 1 });
    let decision = await peek();
    for (let tries = 0; decision.outcome === 'uncounted' && tries < 100; tries++) {
      await setTimeout(50);
      decision = await peek();
    }
    if (decision.outcome === 'uncounted') throw new Error(`Redis did not answer: ${decision.reason}`);
    points += limit - (decision.buckets[0]?.remaining ?? limit);
  }
  return points;
}
