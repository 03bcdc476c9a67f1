import { setTimeout } from 'node:timers/promises';
import { CONTESTANTS, PLAIN_PROXY } from '../contestants/all.ts';
import type { Contestant, Running, Scene } from '../contestants/contestant.ts';
import { ACCOUNTS, type Bench, REFUSED_ACCOUNTS } from '../lab/bench.ts';
import { residentBytes } from '../lab/process-table.ts';
import { costOf, inTurn } from '../lab/turns.ts';
import { type ArrivalOptions, arrivals } from '../load/arrivals.ts';
import { openConnections } from '../load/connections.ts';
import { BODY_BYTES, bodyPath, POST_PATH } from '../load/upstream.ts';
import { PATH, type WrkOptions } from '../load/wrk.ts';
import type { Latency, Memory, Results, Throughput, WorstWindow } from './results.ts';

const US_PER_SECOND = 1_000_000;
const BYTES_PER_MB = 2 ** 20;

/** A contestant that takes requests. */
interface Side {
  readonly name: string;
  readonly running: Running;
}

/** What all contestants of a measurement have in common. */
interface Terms extends Partial<Scene> {
  readonly takesPart?: (contestant: Contestant) => boolean;
}

/** Starts the chosen contestants on the same terms for as long as `work` takes. One that cannot start is named, not fatal. */
async function among<Figures>(
  bench: Bench,
  name: string,
  { takesPart = () => true, ...terms }: Terms,
  work: (sides: readonly Side[]) => Promise<Figures>,
): Promise<Figures> {
  bench.say(`\n${name}`);
  const sides: Side[] = [];
  try {
    for (const contestant of chosenOf(bench).filter(takesPart)) {
      const found = contestant.find();
      try {
        if ('missing' in found) throw new Error(found.missing);
        const running = await bench.start(contestant, `${name} ${contestant.name}`, terms);
        sides.push({ name: contestant.name, running });
      } catch (error) {
        bench.say(`  ${contestant.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return await work(sides);
  } finally {
    for (const { running } of sides) await running.stop();
  }
}

const MEASUREMENTS = ['throughput', 'refused', 'messages', 'latency', 'window', 'memory', 'scaling'] as const;
const QUICK: readonly string[] = ['throughput', 'refused', 'latency'];

/** The measurements that the words name: all if there are no such words, and three in a quick run. */
export function measurementsOf({ words, isQuick }: Bench): readonly (typeof MEASUREMENTS)[number][] {
  const named = MEASUREMENTS.filter((name) => words.includes(name));
  return named.length > 0 ? named : MEASUREMENTS.filter((name) => !isQuick || QUICK.includes(name));
}

/** The contestants that contain one of the words that name no measurement; all if there are no such words. */
export function chosenOf({ words }: Bench): readonly Contestant[] {
  const wanted = words.filter((word) => !MEASUREMENTS.some((name) => name === word));
  return CONTESTANTS.filter(
    ({ name }) =>
      wanted.length === 0 || wanted.some((word) => name.toLowerCase().includes(word.toLowerCase())),
  );
}

/** Requests per second on one gateway core, with limits that are never reached. */
export function measureThroughput(bench: Bench): Promise<Record<string, Throughput[]>> {
  return saturateAll(bench, 'throughput', {}, ACCOUNTS);
}

/** Requests per second when nearly all of them are refused: what a flood costs. */
export function measureRefused(bench: Bench): Promise<Record<string, Throughput[]>> {
  const terms = { limit: 1, accounts: REFUSED_ACCOUNTS, takesPart: hasLimiter };
  return saturateAll(bench, 'refused', terms, REFUSED_ACCOUNTS);
}

function hasLimiter(contestant: Contestant): boolean {
  return contestant.hasLimiter;
}

function saturateAll(bench: Bench, name: string, terms: Terms, accounts: number) {
  return among(bench, name, terms, async (sides) => {
    await warmUp(bench, sides, { accounts });
    const measure = ({ running }: Side) => saturate(bench, running, { accounts, seconds: bench.seconds });
    return inTurn(sides, bench.rounds, measure, (line) => bench.say(line));
  });
}

const WARM_REQUESTS = 40_000;
const MAX_WARM_UPS = 6;

/** Until the machine code is there: compilers look at how often something ran, not at how long. */
async function warmUp(
  bench: Bench,
  sides: readonly Side[],
  options: Partial<WrkOptions> = {},
): Promise<void> {
  for (const { running } of sides) {
    let sent = 0;
    for (let turn = 0; turn < MAX_WARM_UPS && sent < WARM_REQUESTS; turn++) {
      sent += (await bench.load(running, { ...options, seconds: warmUpSeconds(bench) })).requests;
    }
  }
}

function warmUpSeconds(bench: Bench): number {
  return bench.either(3, 1);
}

/** As many requests as a gateway takes from connections that never pause. */
export async function saturate(
  bench: Bench,
  running: Running,
  options: Partial<WrkOptions>,
): Promise<Throughput> {
  const cost = await costOf(running, () => bench.load(running, options), await bench.redis());
  const { requests, us, refused, failed, p50Us, p99Us, gatewayUs, redisUs } = cost;
  return {
    requestsPerSecond: Math.round((requests * US_PER_SECOND) / us),
    refused: rounded(refused / requests),
    failed,
    p50Ms: rounded(p50Us / 1000),
    p99Ms: rounded(p99Us / 1000),
    gatewayCpuUs: rounded(gatewayUs),
    redisCpuUs: rounded(redisUs),
  };
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** Kinds of messages that are not small GETs. */
const MESSAGES: Readonly<Record<string, Partial<WrkOptions>>> = Object.fromEntries([
  ...BODY_BYTES.map((bytes) => [`GET ${bytes / 1024} KiB`, { path: bodyPath(bytes) }] as const),
  ...BODY_BYTES.map((bytes) => [`POST ${bytes / 1024} KiB`, { path: POST_PATH, bodyBytes: bytes }] as const),
]);
/** Few, so that bodies of 1 MiB are under way and not queues of them. */
const MESSAGE_CONNECTIONS = 16;

/** What large bodies, uploads over kept connections and a TLS upstream cost the plain proxy and Weir. */
export async function measureMessages(bench: Bench): Promise<NonNullable<Results['messages']>> {
  const takesPart = ({ name }: Contestant) => name === PLAIN_PROXY.name || name.startsWith('Weir');
  const { tlsPort, caFile } = await bench.upstream();
  const tls = { takesPart, upstreamPort: tlsPort, upstreamCaFile: caFile };
  return {
    ...(await measureKinds(bench, 'messages', { takesPart }, MESSAGES)),
    ...(await measureKinds(bench, 'messages, TLS', tls, { 'GET, TLS upstream': {} })),
  };
}

function measureKinds(bench: Bench, name: string, terms: Terms, kinds: typeof MESSAGES) {
  return among(bench, name, terms, async (sides) => {
    const results: Record<string, Record<string, number[]>> = {};
    for (const [kind, options] of Object.entries(kinds)) {
      bench.say(kind);
      const measure = async ({ running }: Side, seconds = bench.seconds) => {
        const load = () =>
          bench.strictLoad(running, { ...options, seconds, connections: MESSAGE_CONNECTIONS });
        return Math.round((await costOf(running, load)).gatewayUs);
      };
      for (const side of sides) await measure(side, warmUpSeconds(bench));
      results[kind] = await inTurn(sides, bench.rounds, measure, (line) => bench.say(line));
    }
    return results;
  });
}

/** Requests at a fixed rate, whether or not the answers keep up. */
function arrive(bench: Bench, options: Partial<ArrivalOptions> & Pick<ArrivalOptions, 'port' | 'phases'>) {
  const defaults = {
    path: PATH,
    accounts: ACCOUNTS,
    connections: 128,
    warmUpSeconds: 0,
    findsWorstWindow: false,
  };
  return arrivals({ ...defaults, ...options }, bench.cores?.load);
}

/** Latencies at fixed arrival rates, of the contestants and of the upstream alone. */
export function measureLatency(
  bench: Bench,
  rate: number,
  ownRates: Readonly<Record<string, number>>,
): Promise<Latency> {
  return among(bench, 'latency', {}, async (sides) => {
    await warmUp(bench, sides);
    const direct = { port: (await bench.upstream()).port, pids: [], stop: async () => undefined };
    const measure = ({ name, running: { port } }: Side) => {
      const phases = [{ seconds: bench.seconds, rate: ownRates[name] ?? rate }];
      return arrive(bench, { port, phases, warmUpSeconds: warmUpSeconds(bench) });
    };
    const all = [{ name: 'upstream', running: direct }, ...sides];
    const { upstream = [], ...contestants } = await inTurn(all, bench.rounds, measure, (line) =>
      bench.say(line),
    );
    return { rate, ownRates, upstream, contestants };
  });
}

/** Requests per second and Account, of the limit that is approached. */
const LIMIT = 200;

/**
 * The two patterns that windows and buckets are weak against. A flood after a pause meets a bucket that is full
 * and refilling; one request, then a flood across the end of the window that it opened, meets a fixed window twice.
 */
const PHASES = [
  { seconds: 0.05, rate: 20 },
  { seconds: 0.7, rate: 0 },
  { seconds: 1.75, rate: 4 * LIMIT },
];

/** One Account that asks for four times its limit: how much of that one second lets through. */
export function measureWindow(bench: Bench): Promise<Record<string, WorstWindow[]>> {
  const measure = async ({ running: { port } }: Side) => {
    const options = { port, connections: 32, accounts: 1, phases: PHASES, findsWorstWindow: true };
    const { admitted, degraded, sent, worstWindow } = await arrive(bench, options);
    const admittedShare = (admitted - degraded) / LIMIT;
    return { worst: worstWindow / LIMIT, admittedShare, admitted, degraded, sent };
  };
  return among(bench, 'window', { limit: LIMIT, accounts: 1, takesPart: hasLimiter }, (sides) =>
    inTurn(sides, bench.rounds, measure, (line) => bench.say(line)),
  );
}

const IDLE_CONNECTIONS = 10_000;
/** A process that has just started is still giving memory back. */
const SETTLE_MS = 2_000;

export function measureMemory(bench: Bench): Promise<Record<string, Memory | string>> {
  const measure = async ({ running: { port, pids } }: Side): Promise<Memory | string> => {
    const atRestMb = residentBytes(pids) / BYTES_PER_MB;
    try {
      const clients = await openConnections(port, IDLE_CONNECTIONS, PATH);
      const connectedMb = residentBytes(pids) / BYTES_PER_MB;
      for (const client of clients) client.close();
      return { atRestMb, connectedMb };
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  return among(bench, 'memory', {}, async (sides) => {
    await setTimeout(SETTLE_MS);
    const seen = await inTurn(sides, 1, measure, (line) => bench.say(line));
    return Object.fromEntries(Object.entries(seen).map(([name, [memory = '']]) => [name, memory]));
  });
}
