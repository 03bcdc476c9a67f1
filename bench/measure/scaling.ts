import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import type { Cores } from '../lab/machine.ts';
import { ACCOUNTS, type Bench, FAR_ABOVE, sceneOf } from './bench.ts';
import { median } from './lineup.ts';
import { saturate, type Throughput } from './throughput.ts';

const PROCESSES = [1, 2, 4];
/** An identities file of more than 500,000 would exceed its 64 MiB. */
const ACCOUNT_COUNTS = [1_000, 10_000, 100_000, 500_000];

export interface Scaling {
  /** Weir processes on one Redis; figures are sums over the processes, CPU time is per request. */
  readonly processes: readonly ScalingPoint[];
  /** Accounts that take turns, on one process. */
  readonly accounts: readonly ScalingPoint[];
  /** Cores that the processes had between them; undefined where they ran anywhere. */
  readonly cores: number | undefined;
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
  return { processes, accounts, cores: bench.cores?.gateways.length };
}

async function point(
  bench: Bench,
  count: number,
  processes: number,
  accounts: number,
): Promise<ScalingPoint> {
  const name = `scaling-${processes}-${accounts}`;
  const running: Running[] = [];
  try {
    for (let index = 0; index < processes; index++) {
      const scene = sceneOf(bench, { name: `${name}-${index}`, limit: FAR_ABOVE, accounts });
      running.push(await weir('redis').start({ ...scene, cores: coresOf(bench, index) }));
    }
    const run = (seconds: number) =>
      Promise.all(running.map((one) => saturate(bench, one, accounts, seconds)));
    await run(bench.plan.warmUpSeconds);
    const result = { count, ...together(await run(bench.plan.seconds)) };
    bench.say(`  scaling  ${processes} processes, ${accounts} accounts: ${JSON.stringify(result)}`);
    return result;
  } finally {
    for (const one of running) await one.stop();
  }
}

/** A core for each process as long as there are some. */
function coresOf({ cores }: Bench, index: number): Cores | undefined {
  if (cores === undefined) return undefined;
  return { ...cores, gateway: cores.gateways[index % cores.gateways.length] ?? cores.gateway };
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
