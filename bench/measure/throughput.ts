import type { Running } from '../contestants/contestant.ts';
import { cpuUs } from '../lab/process-table.ts';
import { wrk } from '../load/wrk.ts';
import { ACCOUNTS, type Bench, CONNECTIONS, FAR_ABOVE, lineupOf } from './bench.ts';
import { alternate } from './lineup.ts';
import { warmUp } from './warm-up.ts';

const US_PER_SECOND = 1_000_000;

/** Few enough that nearly every request is one too many. */
const REFUSED_ACCOUNTS = 10;

/** What one closed-loop run came to. */
export interface Throughput {
  readonly requestsPerSecond: number;
  /** Share of the answers that were refusals, 0 to 1. */
  readonly refused: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU time of the gateway's processes, a limiter service included, per request. */
  readonly gatewayCpuUs: number;
  /** CPU time of Redis per request. */
  readonly redisCpuUs: number;
}

export type ThroughputRounds = Record<string, Throughput[]>;

/** Requests per second on one gateway core, with limits that are never reached. */
export function measureThroughput(bench: Bench): Promise<ThroughputRounds> {
  return rounds(bench, 'throughput', FAR_ABOVE, ACCOUNTS);
}

/** Requests per second when nearly all of them are refused: what a flood costs. */
export function measureRefused(bench: Bench): Promise<ThroughputRounds> {
  return rounds(bench, 'refused', 1, REFUSED_ACCOUNTS);
}

async function rounds(
  bench: Bench,
  name: 'throughput' | 'refused',
  limit: number,
  accounts: number,
): Promise<ThroughputRounds> {
  const { plan, say } = bench;
  const takesPart = (contestant: { hasLimiter: boolean }) => name === 'throughput' || contestant.hasLimiter;
  const lineup = await lineupOf(bench, { name, limit, accounts }, takesPart);
  try {
    say(`${name}: warming up`);
    await warmUp(bench, lineup, accounts);
    return await alternate(
      lineup,
      plan.rounds,
      (running) => saturate(bench, running, accounts, plan.seconds),
      say,
    );
  } finally {
    await lineup.stop();
  }
}

/** As many requests as a gateway takes from connections that never pause. */
export async function saturate(
  { cores, redis }: Bench,
  { pids, port }: Running,
  accounts: number,
  seconds: number,
): Promise<Throughput> {
  const gatewayBefore = cpuUs(pids);
  const redisBefore = cpuUs([redis.pid]);
  const result = await wrk({ port, seconds, connections: CONNECTIONS, accounts, cores: cores?.load });
  const perRequest = (spentUs: number) => rounded(spentUs / result.requests);
  return {
    requestsPerSecond: Math.round((result.requests * US_PER_SECOND) / result.us),
    refused: rounded(result.refused / result.requests),
    failed: result.failed,
    p50Ms: rounded(result.p50Us / 1000),
    p99Ms: rounded(result.p99Us / 1000),
    gatewayCpuUs: perRequest(cpuUs(pids) - gatewayBefore),
    redisCpuUs: perRequest(cpuUs([redis.pid]) - redisBefore),
  };
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}
