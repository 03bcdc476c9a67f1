import { Redis } from 'ioredis';
import { runCharges } from '../../test/fixtures/run-charges.ts';
import type { Bench } from '../lab/bench.ts';
import { median } from '../lab/turns.ts';
import { twoBuckets } from '../load/two-buckets.ts';
import { table, thousands } from '../report/section.ts';
import { type Contender, type Counter, contenders, weir } from './contenders.ts';

const ROUND_MS = 1200;
const ACCOUNTS = 1000;
const ORGANIZATIONS = 50;
const LIMITS = { account: 1_000_000, organization: 1_000_000_000 };

/** Weir's script with one decision a call: what batching is measured against. */
const unbatched: Contender = {
  name: 'Weir without batching',
  canWeigh: true,
  async open(url, prefix, limits) {
    const client = new Redis(url);
    return {
      async decide(account, organization, cost) {
        const buckets = twoBuckets(prefix, account, organization, limits);
        const [decision] = await runCharges(client, [{ buckets, cost }]);
        return decision?.outcome === 'admitted';
      },
      close: async () => client.disconnect(),
    };
  },
};

/** Decisions of two buckets, all admitted, as fast as one process can make them; the contenders take turns. */
export async function measureThroughput(url: string, bench: Bench): Promise<string[]> {
  const sides = [
    ...contenders.map((contender) => ({ contender, concurrency: 64 })),
    { contender: unbatched, concurrency: 64 },
    ...[16, 1].flatMap((concurrency) => [weir, unbatched].map((contender) => ({ contender, concurrency }))),
  ].map((side, index) => ({ ...side, name: `${index}` }));
  const seen = await bench.inTurn(sides, (side) => measure(url, side));
  const rows = sides.map(({ name, contender, concurrency }) => {
    const of = (figure: 'perSecond' | 'redisUs' | 'clientUs') =>
      median((seen[name] ?? []).map((round) => round[figure]));
    const costs = [of('redisUs').toFixed(1), of('clientUs').toFixed(1)];
    return [contender.name, concurrency, thousands(of('perSecond')), ...costs];
  });
  return [
    `**Cost of a decision.** Two buckets (one where said), 1,000 accounts of 50 organizations, all admitted, one client process, medians of ${bench.rounds} rounds.`,
    '',
    ...table(['counter', 'at once', 'decisions/s', 'Redis CPU, µs', 'client CPU, µs'], rows),
  ];
}

async function measure(
  url: string,
  { name, contender, concurrency }: { name: string; contender: Contender; concurrency: number },
) {
  const counter = await contender.open(url, `thr${name}-${Date.now()}`, LIMITS);
  const admin = new Redis(url);
  await run(counter, concurrency, ROUND_MS / 4);
  const [redisBefore, clientBefore] = [await redisCpuUs(admin), process.cpuUsage()];
  const startMs = performance.now();
  const decisions = await run(counter, concurrency, ROUND_MS);
  const perSecond = (decisions * 1000) / (performance.now() - startMs);
  const client = process.cpuUsage(clientBefore);
  const redisUs = (await redisCpuUs(admin)) - redisBefore;
  admin.disconnect();
  await counter.close();
  return { perSecond, redisUs: redisUs / decisions, clientUs: (client.user + client.system) / decisions };
}

async function run(counter: Counter, concurrency: number, forMs: number): Promise<number> {
  let decisions = 0;
  const endMs = performance.now() + forMs;
  const work = async (first: number): Promise<void> => {
    for (let turn = first; performance.now() < endMs; turn += concurrency) {
      await counter.decide(`acct_${turn % ACCOUNTS}`, `org_${(turn % ACCOUNTS) % ORGANIZATIONS}`, 1);
      decisions += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, (_, index) => work(index)));
  return decisions;
}

async function redisCpuUs(admin: Redis): Promise<number> {
  const info = await admin.info('cpu');
  const seconds = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1]);
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
}
