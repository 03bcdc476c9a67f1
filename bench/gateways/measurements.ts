import { setTimeout } from 'node:timers/promises';
import type { Contestant, Running } from '../contestants/contestant.ts';
import { ACCOUNTS, type Bench, REFUSED_ACCOUNTS } from '../lab/bench.ts';
import { residentBytes } from '../lab/process-table.ts';
import { costOf, inTurn } from '../lab/turns.ts';
import { type ArrivalOptions, arrivals } from '../load/arrivals.ts';
import { openConnections } from '../load/connections.ts';
import { PATH, type WrkOptions } from '../load/wrk.ts';
import { among, type Side, type Terms, warmUp, warmUpSeconds } from './lineup.ts';
import type { Latency, Memory, Throughput, WorstWindow } from './results.ts';

const US_PER_SECOND = 1_000_000;
const BYTES_PER_MB = 2 ** 20;

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
    return bench.inTurn(sides, measure);
  });
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
    const { upstream = [], ...contestants } = await bench.inTurn(all, measure);
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
    bench.inTurn(sides, measure),
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
    const seen = await inTurn(sides, 1, measure);
    return Object.fromEntries(Object.entries(seen).map(([name, [memory = '']]) => [name, memory]));
  });
}
