import { Redis } from 'ioredis';
import { bucketKey } from '../../src/store/keys.ts';
import { runCharges } from '../../test/fixtures/run-charges.ts';
import { type Contender, type Counter, contenders } from './contenders.ts';

export interface ThroughputRow {
  readonly name: string;
  readonly concurrency: number;
  readonly decisionsPerSecond: number;
  /** CPU time of Redis and of this process for one decision of two buckets. */
  readonly redisUs: number;
  readonly clientUs: number;
}

const ROUND_MS = 1200;
const ROUNDS = 3;
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
        const buckets = [
          {
            key: bucketKey(prefix, organization, 'account-read', account),
            limit: limits.account,
            windowSeconds: 1,
          },
          {
            key: bucketKey(prefix, organization, 'organization-read', organization),
            limit: limits.organization,
            windowSeconds: 1,
          },
        ];
        const [decision] = await runCharges(client, [{ buckets, cost }]);
        return decision?.outcome === 'admitted';
      },
      close: async () => client.disconnect(),
    };
  },
};

/** Decisions of two buckets, all admitted, as fast as one process can make them; the contenders take turns. */
export async function measureThroughput(url: string): Promise<ThroughputRow[]> {
  const plan = [
    ...contenders.map((contender) => ({ contender, concurrency: 64 })),
    { contender: unbatched, concurrency: 64 },
    ...[16, 1].flatMap((concurrency) =>
      [contenders[0], unbatched].flatMap((contender) => (contender ? [{ contender, concurrency }] : [])),
    ),
  ];
  const rounds = plan.map((): ThroughputRow[] => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, { contender, concurrency }] of plan.entries()) {
      console.log(`throughput, round ${round + 1} of ${ROUNDS}: ${contender.name}, ${concurrency} at once`);
      rounds[index]?.push(await measure(url, contender, concurrency, `thr${round}${index}`));
    }
  }
  return rounds.map(medianRow);
}

async function measure(
  url: string,
  contender: Contender,
  concurrency: number,
  prefix: string,
): Promise<ThroughputRow> {
  const counter = await contender.open(url, prefix, LIMITS);
  const admin = new Redis(url);
  await run(counter, concurrency, ROUND_MS / 4);
  const [redisBefore, clientBefore] = [await redisCpuUs(admin), process.cpuUsage()];
  const startMs = performance.now();
  const decisions = await run(counter, concurrency, ROUND_MS);
  const seconds = (performance.now() - startMs) / 1000;
  const client = process.cpuUsage(clientBefore);
  const redisUs = (await redisCpuUs(admin)) - redisBefore;
  admin.disconnect();
  await counter.close();
  return {
    name: contender.name,
    concurrency,
    decisionsPerSecond: decisions / seconds,
    redisUs: redisUs / decisions,
    clientUs: (client.user + client.system) / decisions,
  };
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

function medianRow(rows: readonly ThroughputRow[]): ThroughputRow {
  const sorted = rows.toSorted((a, b) => a.decisionsPerSecond - b.decisionsPerSecond);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('no round was measured');
  return middle;
}
