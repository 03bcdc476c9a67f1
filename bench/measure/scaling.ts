import { weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench, FAR_ABOVE, sceneOf } from './bench.ts';
import { median, startLineup } from './lineup.ts';
import { saturate, type Throughput } from './throughput.ts';

const PROCESSES = [1, 2, 4];
const ACCOUNT_COUNTS = [1_000, 10_000, 100_000];

export interface Scaling {
  /** Weir processes on one Redis; figures are sums over the processes, CPU time is per request. */
  readonly processes: readonly ScalingPoint[];
  /** Accounts that take turns, on one process. */
  readonly accounts: readonly ScalingPoint[];
}

export interface ScalingPoint {
  readonly count: number;
  readonly requestsPerSecond: number;
  readonly gatewayCpuUs: number;
  readonly redisCpuUs: number;
}

export async function measureScaling(bench: Bench): Promise<Scaling> {
  const processes: ScalingPoint[] = [];
  for (const count of PROCESSES) processes.push(await point(bench, count, count, ACCOUNTS));
  const accounts: ScalingPoint[] = [];
  for (const count of ACCOUNT_COUNTS) accounts.push(await point(bench, count, 1, count));
  return { processes, accounts };
}

async function point(
  bench: Bench,
  count: number,
  processes: number,
  accounts: number,
): Promise<ScalingPoint> {
  const scene = sceneOf(bench, { name: `scaling-${processes}-${accounts}`, limit: FAR_ABOVE, accounts });
  const lineup = await startLineup(
    Array.from({ length: processes }, () => weir('redis')),
    scene,
    bench.say,
  );
  try {
    const running = lineup.places.flatMap((place) => ('running' in place ? [place.running] : []));
    const run = (seconds: number) =>
      Promise.all(running.map((one) => saturate(bench, one, accounts, seconds)));
    await run(bench.plan.warmUpSeconds);
    const result = { count, ...together(await run(bench.plan.seconds)) };
    bench.say(`  scaling  ${processes} processes, ${accounts} accounts: ${JSON.stringify(result)}`);
    return result;
  } finally {
    await lineup.stop();
  }
}

/** Redis's time is what all processes together caused: each process's share of requests saw all of it. */
function together(all: readonly Throughput[]): Omit<ScalingPoint, 'count'> {
  const requestsPerSecond = all.reduce((total, one) => total + one.requestsPerSecond, 0);
  return {
    requestsPerSecond,
    gatewayCpuUs: median(all.map((one) => one.gatewayCpuUs)),
    redisCpuUs: median(all.map((one) => one.redisCpuUs)) / all.length,
  };
}
