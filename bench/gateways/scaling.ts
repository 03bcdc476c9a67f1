import { weir } from '../contestants/weir.ts';
import { ACCOUNTS, type Bench } from '../lab/bench.ts';
import { median } from '../lab/turns.ts';
import { type Side, warmUp } from './lineup.ts';
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
  const sides: Side[] = [];
  for (let index = 0; index < processes; index++) {
    // A core for each process while there are enough.
    const gateway = cores?.gateways[index % cores.gateways.length] ?? '0';
    const terms = { accounts, cores: cores && { ...cores, gateway } };
    const name = `scaling ${count} ${accounts} ${index}`;
    sides.push({ name, running: await bench.start(weir('redis'), name, terms) });
  }
  await warmUp(bench, sides, { accounts });
  const name = `${processes} processes, ${accounts} Accounts`;
  const measure = () => saturateTogether(bench, sides, accounts);
  const { [name]: rounds = [] } = await bench.inTurn([{ name }], measure);
  for (const { running } of sides) await running.stop();
  return {
    count,
    requestsPerSecond: median(rounds.map((round) => round.requestsPerSecond)),
    gatewayCpuUs: median(rounds.map((round) => round.gatewayCpuUs)),
    redisCpuUs: median(rounds.map((round) => round.redisCpuUs)),
  };
}

/** As many requests as gateways take side by side. */
async function saturateTogether(bench: Bench, sides: readonly Side[], accounts: number) {
  const options = { accounts, seconds: bench.seconds };
  const seen = await Promise.all(sides.map(({ running }) => saturate(bench, running, options)));
  return {
    requestsPerSecond: seen.reduce((total, one) => total + one.requestsPerSecond, 0),
    gatewayCpuUs: median(seen.map((one) => one.gatewayCpuUs)),
    // All processes together caused it, and each saw all of it.
    redisCpuUs: median(seen.map((one) => one.redisCpuUs)) / seen.length,
  };
}
