import { Redis } from 'ioredis';
import { openStore } from '../../src/store/open-store.ts';
import type { Bench } from '../lab/bench.ts';
import { twoBuckets } from '../load/two-buckets.ts';
import { table } from '../report/section.ts';

const DECISIONS = 20_000;
const ORGANIZATIONS = 50;
const LIMITS = { account: 1_000_000, organization: 1_000_000 };

/** What docs/scale.md calculates the network with. Other work on the machine hardly changes these figures. */
export async function measureBytes(bench: Bench): Promise<readonly string[]> {
  const [primary, replica] = [await bench.startRedis(), await bench.startRedis()];
  const [admin, follower] = [new Redis(primary.port), new Redis(replica.port)];
  await follower.replicaof('127.0.0.1', primary.port);
  while (!/master_link_status:up/.test(await follower.info('replication'))) await new Promise(setImmediate);
  const bytes: number[][] = [];
  for (const atOnce of [1, 16, 64]) {
    const { sent, answered, replicated } = await bytesPerDecision(primary.port, admin, atOnce);
    bytes.push([atOnce, sent, answered, replicated].map(Math.round));
  }
  for (const client of [admin, follower]) client.disconnect();
  return [
    'Bytes of a decision of two buckets, by `INFO`. A replica of Redis receives what is replicated, as does every further one. Other work on the',
    'machine hardly changes these figures.',
    '',
    ...table(['decisions of one turn', 'to Redis:', 'from Redis:', 'replicated:'], bytes),
  ];
}

interface Bytes {
  readonly sent: number;
  readonly answered: number;
  /** To one replica of Redis. */
  readonly replicated: number;
}

/** Bytes of a decision of two buckets, `atOnce` of which share a turn of the event loop. */
async function bytesPerDecision(port: number, admin: Redis, atOnce: number): Promise<Bytes> {
  const store = openStore({ kind: 'redis', url: `redis://127.0.0.1:${port}`, deadlineMs: 5_000 });
  const charge = (index: number) => {
    const [account, organization] = [`acct_${index % 1_000}`, `org_${index % ORGANIZATIONS}`];
    const buckets = twoBuckets(`bytes${atOnce}`, account, organization, LIMITS);
    return store.charge({ buckets, cost: 1 });
  };
  while ((await charge(0)).outcome !== 'admitted') await new Promise(setImmediate);
  const before = await trafficOf(admin);
  for (let done = 0; done < DECISIONS; done += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, (_, index) => charge(done + index)));
  }
  const after = await trafficOf(admin);
  await store.close();
  const per = (name: keyof Bytes) => (after[name] - before[name]) / DECISIONS;
  return { sent: per('sent'), answered: per('answered'), replicated: per('replicated') };
}

async function trafficOf(admin: Redis): Promise<Bytes> {
  const info = `${await admin.info('stats')}\n${await admin.info('replication')}`;
  const count = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  const replicated = count('master_repl_offset');
  return {
    sent: count('total_net_input_bytes'),
    answered: count('total_net_output_bytes') - replicated,
    replicated,
  };
}
