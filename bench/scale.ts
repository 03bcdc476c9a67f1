/** `npx tsx bench/scale.ts`: bytes and memory that docs/scale.md calculates with; writes its section of RESULTS.md. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { bucketKey } from '../src/store/keys.ts';
import { openStore } from '../src/store/open.ts';
import { startRedisServer } from '../test/fixtures/redis-server.ts';
import { weir } from './contestants/weir.ts';
import { hardware } from './lab/machine.ts';
import { residentBytes } from './lab/process-table.ts';
import { startUpstream } from './load/upstream.ts';
import { writeSection } from './report/section.ts';

const DECISIONS = 20_000;
const ORGANIZATIONS = 50;

interface Bytes {
  readonly sent: number;
  readonly answered: number;
  /** To one replica of Redis. */
  readonly replicated: number;
}

/** Bytes of a decision of two buckets, `atOnce` of which share a turn of the event loop. */
async function bytesPerDecision(url: string, admin: Redis, atOnce: number): Promise<Bytes> {
  const store = openStore({ kind: 'redis', url, deadlineMs: 5_000 });
  const charge = (index: number) => {
    const [account, organization] = [`acct_${index % 1_000}`, `org_${index % ORGANIZATIONS}`];
    const buckets = [
      {
        key: bucketKey(`bytes${atOnce}`, organization, 'account-read', account),
        limit: 1_000_000,
        windowSeconds: 1,
      },
      {
        key: bucketKey(`bytes${atOnce}`, organization, 'organization-read', organization),
        limit: 1_000_000,
        windowSeconds: 1,
      },
    ];
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
async function memoryMb(accounts: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-scale-'));
  const upstream = await startUpstream(folder, undefined);
  const scene = {
    folder,
    upstreamPort: upstream.port,
    redisPort: 1,
    cores: undefined,
    limit: 1_000,
    accounts,
  };
  const gateway = await weir('memory').start(scene);
  const mb = residentBytes(gateway.pids) / 2 ** 20;
  await gateway.stop();
  await upstream.stop();
  rmSync(folder, { recursive: true });
  return mb;
}

const primary = await startRedisServer();
const replica = await startRedisServer();
const admin = new Redis(primary.url);
const follower = new Redis(replica.url);
await follower.replicaof('127.0.0.1', Number(new URL(primary.url).port));
while (!/master_link_status:up/.test(await follower.info('replication'))) await new Promise(setImmediate);
const bytes: [atOnce: number, Bytes][] = [];
for (const atOnce of [1, 16, 64]) bytes.push([atOnce, await bytesPerDecision(primary.url, admin, atOnce)]);
for (const client of [admin, follower]) client.disconnect();
await replica.stop();
await primary.stop();
const memory: [accounts: number, mb: number][] = [];
for (const accounts of [1_000, 100_000, 300_000]) memory.push([accounts, await memoryMb(accounts)]);

writeSection(
  'scale',
  `## Bytes and memory

${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC, \`npx tsx bench/scale.ts\`, Node ${process.versions.node}, ${hardware()}. Other work on the machine does not change these figures.

Bytes of a decision of two buckets, by \`INFO\`. A replica of Redis receives what is replicated, as does every further one.

| decisions of one turn | to Redis | from Redis | replicated |
|---|--:|--:|--:|
${bytes.map(([atOnce, { sent, answered, replicated }]) => `| ${[atOnce, sent, answered, replicated].map(Math.round).join(' | ')} |`).join('\n')}

Resident memory of a gateway that has just read an identities file in which each Account has a token and a principal.

| Accounts | MB |
|---|--:|
${memory.map(([accounts, mb]) => `| ${accounts.toLocaleString('en')} | ${Math.round(mb)} |`).join('\n')}`,
);
