import type { Running } from '../contestants/contestant.ts';
import { weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench } from '../lab/bench.ts';
import { median } from '../lab/turns.ts';
import { saturate } from './measurements.ts';
import type { Scaling, ScalingPoint } from './results.ts';

const PROCESSES = [1, 2, 4];
/** An identities file of more than 500,000 would exceed its 64 MiB. */
const ACCOUNT_COUNTS = [1_000, 10_000, 100_000, 500_000];

/** How Weir with Redis takes more processes, and more Accounts. */
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
  const { cores } = bench;
  const running: Running[] = [];
  for (let index = 0; index < processes; index++) {
    // A core for each process while there are enough.
    const gateway = cores?.gateways[index % cores.gateways.length] ?? '0';
    const terms = { accounts, cores: cores && { ...cores, gateway } };
    running.push(await bench.start(weir('redis'), `scaling ${count} ${accounts} ${index}`, terms));
  }
  const run = (seconds: number) =>
    Promise.all(running.map((one) => saturate(bench, one, { accounts, seconds })));
  await run(bench.either(3, 1));
  const seen = await run(bench.seconds);
  for (const one of running) await one.stop();
  const result = {
    count,
    requestsPerSecond: seen.reduce((total, one) => total + one.requestsPerSecond, 0),
    gatewayCpuUs: median(seen.map((one) => one.gatewayCpuUs)),
    // All processes together caused it, and each saw all of it.
    redisCpuUs: median(seen.map((one) => one.redisCpuUs)) / seen.length,
  };
  bench.say(`  scaling  ${processes} processes, ${accounts} Accounts: ${JSON.stringify(result)}`);
  return result;
}
