import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { freePort } from '../../test/fixtures/free-port.ts';
import { ACCOUNTS_PER_ORGANIZATION } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { startProgram } from '../lab/program.ts';
import { table, thousands, writeResult } from '../report/section.ts';
import { Crowds } from './crowds.ts';
import { ACCOUNTS, Fleet, IN_AN_HOUR, LIMIT, WINDOW_SECONDS } from './fleet.ts';
import { type Arrival, type Ledger, ledgerOf } from './ledger.ts';
import { DurableRedis } from './redis.ts';

const UPSTREAM = fileURLToPath(new URL('./upstream-program.ts', import.meta.url));
const REPLICAS = 2;
/** In a process of k6. */
const CLIENTS = 250;
/** Something is killed so often in a run. */
const KILLS = 9;
/** A stream takes 5 s on average. */
const LONGEST_STREAM_MS = 15_000;

const RUNS = [
  { name: 'nothing killed', kinds: [] },
  { name: 'clients and replicas killed', kinds: ['a client', 'a replica'] },
  { name: 'and Redis', kinds: ['a client', 'a replica', 'Redis'] },
] as const;

interface Run {
  readonly name: string;
  readonly seconds: number;
  readonly kills: readonly { readonly seconds: number; readonly killed: string }[];
  readonly ledger: Ledger;
  readonly mostStreams: number;
  /** By the counts of Redis of the last hour, when every stream had ended. */
  readonly countedPoints: number;
  /** Points that still counted in a window that had no requests. */
  readonly pointsLeft: number;
}

/**
 * Streams whose reservations and costs are random, through two replicas, while clients, replicas and Redis are killed: is a limit ever
 * exceeded, and does Redis count in the end what the access log says?
 */
export async function measureSettling(bench: Bench): Promise<readonly string[]> {
  const runs: Run[] = [];
  for (const { name, kinds } of RUNS.filter((one) => bench.includes(one.name))) {
    bench.say(name);
    const run = await runNow(bench, name, kinds);
    runs.push(run);
    if (run.ledger.pointsOver > 0 || run.pointsLeft > 0 || !isExplained(run)) process.exitCode = 1;
  }
  if (bench.isRecorded) writeResult('settle.json', runs);
  return linesOf(runs, bench.seconds);
}

/**
 * Redis may count more than the logs know: what it charged although its answer was lost, and what a killed replica had not forwarded. It never
 * counts less, but for requests that were settled and whose line a killed replica did not write.
 */
function isExplained({ kills, ledger, countedPoints }: Run): boolean {
  const { loggedPoints, lostFinalPoints, uncountedPoints } = ledger;
  const more = countedPoints - loggedPoints - lostFinalPoints;
  return more >= 0 && (kills.length > 0 || more <= uncountedPoints);
}

async function runNow(bench: Bench, name: string, kinds: readonly string[]): Promise<Run> {
  const folder = join(bench.folder, name.replaceAll(' ', '-'));
  mkdirSync(folder);
  const arrivalsFile = join(folder, 'arrivals.ndjson');
  const port = await freePort();
  const args = ['--import', 'tsx', UPSTREAM, `${port}`, arrivalsFile];
  const upstream = await startProgram({ command: process.execPath, args, cores: undefined, port });
  const redis = bench.endWith(await DurableRedis.start(folder));
  const fleet = bench.endWith(await Fleet.start(folder, REPLICAS, port, redis.port));
  const crowds = new Crowds(fleet.ports, bench.either(6, 2), CLIENTS, bench.seconds);
  const startMs = Date.now();
  const kills: { seconds: number; killed: string }[] = [];
  let mostStreams = 0;
  const arrivals = (): Arrival[] => readArrivals(arrivalsFile);
  for (let turn = 0; turn < KILLS; turn++) {
    const dueMs = startMs + ((turn + 1) * 1_000 * bench.seconds) / (KILLS + 1);
    await setTimeout(Math.max(0, dueMs - Date.now()));
    mostStreams = Math.max(
      mostStreams,
      arrivals().length - fleet.lines.filter(({ outcome }) => outcome === 'admitted').length,
    );
    const killed = kinds[turn % kinds.length];
    if (killed === undefined) continue;
    const seconds = (Date.now() - startMs) / 1_000;
    kills.push({ seconds, killed });
    bench.say(`  ${seconds.toFixed(0)} s: kills ${killed}`);
    if (killed === 'a client') await crowds.kill();
    else if (killed === 'a replica') await fleet.kill(Math.floor(turn / kinds.length) % REPLICAS);
    else await redis.kill();
  }
  await crowds.ended();
  await untilQuiet(fleet);
  const store = openStore({
    kind: 'redis',
    url: `redis://127.0.0.1:${redis.port}`,
    deadlineMs: 5_000,
  });
  const countedPoints = await pointsOf(store, 'tokens-hour', IN_AN_HOUR, 3_600);
  await setTimeout(1_000 * WINDOW_SECONDS);
  const pointsLeft = await pointsOf(store, 'tokens', LIMIT, WINDOW_SECONDS);
  await store.close();
  await fleet.stop();
  await redis.stop();
  await upstream.stop();
  const ledger = ledgerOf(fleet.lines, arrivals(), LIMIT, 1_000 * WINDOW_SECONDS);
  return { name, seconds: bench.seconds, kills, ledger, mostStreams, countedPoints, pointsLeft };
}

function readArrivals(file: string): Arrival[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/** Until no stream has ended for as long as one may take. */
async function untilQuiet(fleet: Fleet): Promise<void> {
  for (let before = -1; fleet.lines.length > before; ) {
    before = fleet.lines.length;
    await setTimeout(LONGEST_STREAM_MS / 3);
  }
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

function linesOf(runs: readonly Run[], seconds: number): readonly string[] {
  const row = (title: string, figure: (run: Run) => number | string) => [
    title,
    ...runs.map((run) => {
      const value = figure(run);
      return typeof value === 'number' ? thousands(value) : value;
    }),
  ];
  const loggedAndLost = ({ ledger }: Run) => ledger.loggedPoints + ledger.lostPoints;
  return [
    `${ACCOUNTS} Accounts with ${thousands(LIMIT)} points in ${WINDOW_SECONDS} s each. Streams of server-sent events with random reservations and costs, of a service of our own,`,
    `through ${REPLICAS} replicas for ${seconds} s. The load is k6's, which reads each stream to its end, from processes with ${CLIENTS} clients each. ${KILLS} times a`,
    'process of the clients, a replica or Redis (`appendfsync always`) is ended by `kill -9` and started again. What Redis cannot count is refused',
    '(`onStoreFailure: reject`). Redis counts more than the logs where it charged a request whose client left, or whose replica or Redis was killed,',
    'between the charge and its answer. These points stay for a window at most.',
    '',
    ...table(
      ['', ...runs.map(({ name }) => `${name}:`)],
      [
        row('streams at once, when something was killed, at most', ({ mostStreams }) => mostStreams),
        row('requests admitted, with a line in the access log', ({ ledger }) => ledger.admitted),
        row('of them settled', ({ ledger }) => ledger.settled),
        row('not settled, because the client left or the upstream broke off', ({ ledger }) =>
          reasonsOf(ledger),
        ),
        row('requests refused', ({ ledger }) => ledger.refused),
        row('requests whose replica was killed before their line', ({ ledger }) => ledger.lost),
        row(
          'requests that Redis did not answer, or whose client left before',
          ({ ledger }) => ledger.uncounted,
        ),
        row('fullest window, of the limit', ({ ledger }) => ledger.fullest.toFixed(3)),
        row('**points over the limit**', ({ ledger }) => ledger.pointsOver),
        row('**points that still count after a window without requests**', ({ pointsLeft }) => pointsLeft),
        row('points reserved', ({ ledger }) => ledger.reservedPoints),
        row('points by the access log, settled ones where there are', ({ ledger }) => ledger.loggedPoints),
        row('and with the reservations of requests without a line', loggedAndLost),
        row('points that Redis counts in the end', ({ countedPoints }) => countedPoints),
        row('**difference**', (run) => run.countedPoints - loggedAndLost(run)),
      ],
    ),
  ];
}

function reasonsOf({ reasons }: Ledger): string {
  const counts = Object.entries(reasons).map(([reason, count]) => `${thousands(count)} ${reason}`);
  return counts.join(', ') || 'none';
}
