import { Redis } from 'ioredis';
import { openStore } from '../../src/store/open.ts';
import { weir } from '../contestants/weir.ts';
import type { Bench } from '../lab/bench.ts';
import { residentBytes } from '../lab/process-table.ts';
import { twoBuckets } from '../load/two-buckets.ts';
import { table, thousands } from '../report/section.ts';

const DECISIONS = 20_000;
const ORGANIZATIONS = 50;
const LIMITS = { account: 1_000_000, organization: 1_000_000 };

/** Other work on the machine does not change these figures. */
export async function measureScale(bench: Bench): Promise<readonly string[]> {
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
  const memory: string[][] = [];
  for (const accounts of bench.isQuick ? [1_000] : [1_000, 100_000, 300_000])
    memory.push([thousands(accounts), thousands(await memoryMb(bench, accounts))]);
  return [
    'Other work on the machine does not change these figures.',
    '',
    'Bytes of a decision of two buckets, by `INFO`. A replica of Redis receives what is replicated, as does every further one.',
    '',
    ...table(['decisions of one turn', 'to Redis:', 'from Redis:', 'replicated:'], bytes),
    '',
    'Resident memory of a gateway that has just read an identities file in which each Account has a token and a principal.',
    '',
    ...table(['Accounts', 'MB:'], memory),
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

/** Resident memory of a gateway that has just read this many Accounts, each with a token and a principal, in MB. */
async function memoryMb(bench: Bench, accounts: number): Promise<number> {
  const gateway = await bench.start(weir('memory'), `${accounts}`, { limit: 1_000, accounts });
  const mb = residentBytes(gateway.pids) / 2 ** 20;
  await gateway.stop();
  return mb;
}
