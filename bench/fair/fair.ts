import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../test/fixtures/free-port.ts';
import type { Contestant, Running } from '../contestants/contestant.ts';
import { findEnvoy, startEnvoy } from '../contestants/envoy-proxy.ts';
import { findHaproxy, startHaproxy } from '../contestants/haproxy.ts';
import { nginx } from '../contestants/nginx.ts';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { startProgram } from '../lab/program.ts';
import { median } from '../lab/turns.ts';
import type { Service } from '../load/upstream.ts';
import { table } from '../report/section.ts';
import { measureTurn } from './turn.ts';

const SERVICE = fileURLToPath(new URL('./service-program.ts', import.meta.url));
const CROWD = fileURLToPath(new URL('./crowd-program.ts', import.meta.url));
const PATH = '/v3/payees?accountId={account}';

/** The service works on 40 requests at once, each for 400 ms: 100 a second. With more, the machine is too busy to show what waiting costs. */
const [PLACES, WORK_MS] = [40, 400];
const CAPACITY = (PLACES * 1_000) / WORK_MS;
const CUSTOMERS = 10;
const QUIET_RATE = 2;
const WARM_UP_SECONDS = 4;
const PATIENCE_MS = 4_000;
const QUEUE_TIMEOUT_MS = 1_000;

/** The argument of the crowd program, as JSON. */
export interface Crowd {
  readonly port: number;
  readonly path: string;
  /** Requests per second of each customer, `acct_1` first. */
  readonly rates: readonly number[];
  readonly patienceMs: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** What one customer got. */
export interface CustomerResult {
  readonly sent: number;
  /** Answered with 200 while the customer waited. */
  readonly served: number;
  /** Answered with something else, or not at all. */
  readonly refused: number;
  /** The customer left before there was an answer. */
  readonly left: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Three times the service's capacity, and one customer more who asks for little. */
const SCENES = [
  { name: 'ten alike', rates: Array.from({ length: CUSTOMERS }, () => (3 * CAPACITY) / CUSTOMERS) },
  {
    name: 'one asks for two thirds',
    rates: [2 * CAPACITY, ...Array.from({ length: CUSTOMERS - 1 }, () => CAPACITY / (CUSTOMERS - 1))],
  },
];

/** A tenth is kept for newcomers. The other 39 keep the service busy but for one place, so a newcomer does not wait there either. */
const CONNECTIONS = PLACES + 3;
const upstream = { connections: CONNECTIONS, queueTimeoutMs: QUEUE_TIMEOUT_MS };
const adaptive = { concurrency: 'adaptive', queueTimeoutMs: QUEUE_TIMEOUT_MS };

const CONTESTANTS: readonly Contestant[] = [
  { ...weir('memory', { settings: { upstream } }), name: `Weir, ${CONNECTIONS} connections` },
  { ...weir('memory', { settings: { upstream: adaptive } }), name: 'Weir, adaptive' },
  nginx('none'),
  queue(`HAProxy, maxconn ${PLACES}`, findHaproxy(), (scene) =>
    startHaproxy(scene, PLACES, { backend: `timeout queue ${QUEUE_TIMEOUT_MS}ms` }),
  ),
  queue(`Envoy, max_connections ${PLACES}`, findEnvoy(), (scene) =>
    startEnvoy(scene, undefined, { connections: PLACES }),
  ),
];

/** A proxy without a limiter, with one queue before the upstream. */
function queue(name: string, found: ReturnType<Contestant['find']>, start: Contestant['start']): Contestant {
  return { name, limiter: 'none', hasLimiter: false, find: () => found, start };
}

/** Who is served when customers ask for three times what a service can do, and what taking turns costs. */
export async function measureFairness(bench: Bench): Promise<readonly string[]> {
  const missing: string[] = [];
  const rows: string[][] = [];
  for (const contestant of CONTESTANTS.filter(({ name }) => bench.includes(name))) {
    const found = contestant.find();
    if ('missing' in found) missing.push(`${contestant.name}: ${found.missing}.`);
    else rows.push(...(await rowsOf(bench, contestant)));
  }
  const cost = bench.words.length === 0 || bench.words.includes('turn') ? await measureTurn(bench) : [];
  return [
    `A service that works on ${PLACES} requests at once, each for ${WORK_MS} ms (${CAPACITY} a second), and ${CUSTOMERS} customers who send ${3 * CAPACITY} a second in all, each in an open`,
    `loop. A customer leaves after ${PATIENCE_MS / 1_000} s without an answer. Proxies that can, end a request after ${QUEUE_TIMEOUT_MS / 1_000} s in the queue. Another customer sends ${QUIET_RATE} requests a`,
    "second, first alone and then beside them. Goodput is what was answered with 200 in time, as a share of the capacity. Jain's index of the ten",
    `is 1 if all were served alike. ${bench.rounds === 1 ? 'One run' : `Medians of ${bench.rounds} runs`} of ${bench.seconds} s; the service, the customers and the gateway share the machine.`,
    '',
    ...table(
      [
        '',
        'customers',
        'goodput:',
        "Jain's index:",
        'most ÷ least:',
        'quiet, served:',
        'quiet p50, ms:',
        'quiet p99, ms:',
        'p99 alone, ms:',
      ],
      rows,
    ),
    '',
    ...missing,
    ...cost,
  ];
}

async function rowsOf(bench: Bench, contestant: Contestant): Promise<string[][]> {
  const rows: string[][] = [];
  for (const { name, rates } of SCENES) {
    const runs: number[][] = [];
    for (let round = 0; round < bench.rounds; round++) {
      const service = await startService(bench);
      const scene = await bench.scene(`${contestant.name} ${name} ${round}`, { upstreamPort: service.port });
      const gateway = await contestant.start({ ...scene, accounts: 2 * CUSTOMERS });
      runs.push(await figuresOf(bench, gateway, rates));
      bench.say(
        `  ${contestant.name}, ${name}: ${runs
          .at(-1)
          ?.map((figure) => figure.toFixed(2))
          .join(' ')}`,
      );
      await gateway.stop();
      await service.stop();
    }
    const middle = (column: number) => median(runs.map((run) => run[column] ?? Number.NaN));
    const [goodput, jain, spread, served, p50, p99, alone] = [0, 1, 2, 3, 4, 5, 6].map(middle) as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    rows.push([
      contestant.name,
      name,
      percent(goodput),
      jain.toFixed(3),
      spread.toFixed(1),
      percent(served),
      ...[p50, p99, alone].map((ms) => ms.toFixed(0)),
    ]);
  }
  return rows;
}

async function figuresOf(bench: Bench, gateway: Running, rates: readonly number[]): Promise<number[]> {
  const quietOnly = rates.map(() => 0);
  const alone = (await crowd(bench, gateway, [...quietOnly, QUIET_RATE])).at(-1);
  const results = await crowd(bench, gateway, [...rates, QUIET_RATE]);
  const quiet = results.at(-1);
  const busy = results.slice(0, -1).map(({ served }) => served);
  const total = results.reduce((sum, { served }) => sum + served, 0);
  const squares = busy.reduce((sum, served) => sum + served ** 2, 0);
  const sum = busy.reduce((all, served) => all + served, 0);
  return [
    total / (CAPACITY * bench.seconds),
    sum ** 2 / (busy.length * squares),
    Math.max(...busy) / Math.max(1, Math.min(...busy)),
    (quiet?.served ?? 0) / (quiet?.sent ?? 1),
    quiet?.p50Ms ?? Number.NaN,
    quiet?.p99Ms ?? Number.NaN,
    alone?.p99Ms ?? Number.NaN,
  ];
}

async function startService(bench: Bench): Promise<Service> {
  const port = await freePort();
  const args = ['--import', 'tsx', SERVICE, ...[port, PLACES, WORK_MS].map(String)];
  const program = await startProgram({ command: process.execPath, args, cores: bench.cores?.load, port });
  return { port, pid: program.pid, stop: () => program.stop() };
}

async function crowd(
  bench: Bench,
  { port }: Running,
  rates: readonly number[],
): Promise<readonly CustomerResult[]> {
  const order: Crowd = {
    port,
    path: PATH,
    rates,
    patienceMs: PATIENCE_MS,
    warmUpSeconds: WARM_UP_SECONDS,
    seconds: bench.seconds,
  };
  const node = [process.execPath, '--import', 'tsx', CROWD, JSON.stringify(order)];
  const [program = '', ...args] =
    bench.cores === undefined ? node : ['taskset', '-c', bench.cores.load, ...node];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (code !== 0) throw new Error(`the crowd program ended with ${code}`);
  return JSON.parse(output);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
