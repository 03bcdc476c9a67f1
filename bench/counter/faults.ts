import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Decision, Store } from '../../src/store/store.ts';
import { startRedisServer } from '../../test/fixtures/redis-server.ts';
import { runCharges } from '../../test/fixtures/run-charges.ts';
import { startTcpProxy } from '../../test/fixtures/tcp-proxy.ts';
import { table } from '../report/section.ts';

/** What one fault does to the limit under one setting of Redis. */
interface FaultRow {
  readonly fault: string;
  readonly setting: string;
  /** Points admitted in the fullest window, over the limit, as the fault begins. */
  readonly atFirst: number;
  /** The same once it has lasted for a while. */
  readonly later: number;
  /** Charges that the store did not count, whose requests are served as degraded. */
  readonly degradedShare: number;
}

const LIMIT = 100;
const SPLIT_SECONDS = 8;
/** The lag that Redis allows, and two seconds because it counts whole seconds and looks once a second. */
const FIRST_SECONDS = 4;
const DEADLINE_MS = 1000;
const EVICTION_TURNS = 2000;
const OTHERS = 60;

export async function measureFaults(): Promise<string[]> {
  const protects = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '2'];
  const faults: FaultRow[] = [
    await splitBrain('min-replicas-to-write 0', []),
    await splitBrain('min-replicas-to-write 1, min-replicas-max-lag 2', protects),
    await eviction('volatile-ttl'),
    await eviction('allkeys-lru'),
    await eviction('noeviction'),
  ];
  const rows = faults.map(({ fault, setting, atFirst, later, degradedShare }) => [
    fault,
    setting,
    atFirst.toFixed(2),
    later.toFixed(2),
    `${Math.round(degradedShare * 100)} %`,
  ]);
  return [
    '**Two faults of Redis.** Points admitted in the fullest window over the limit of 100. Split brain: a replica is cut off and promoted, and one',
    'gateway beside each primary asks for the whole limit in every window; in the first four seconds, and in the next four. Memory: one bucket of 100 points while',
    '120,000 others fill a Redis of 4 MB; after a quarter of them, and after all. Degraded: charges that Redis refused to count.',
    '',
    ...table(['fault', 'setting of Redis', 'at first:', 'later:', 'degraded:'], rows),
  ];
}

function chargeOf(id: string, windowSeconds: number): Charge {
  return { buckets: [{ key: bucketKey('f', id, 'account-read', id), limit: LIMIT, windowSeconds }], cost: 1 };
}

async function untilAdmitted(store: Store, id: string): Promise<void> {
  while ((await store.charge(chargeOf(id, 1))).outcome !== 'admitted') await pause(5);
}

/** A primary that is cut off from its replica, which is promoted; one gateway beside each, both asked for the whole limit. */
async function splitBrain(setting: string, args: readonly string[]): Promise<FaultRow> {
  console.log(`split brain: ${setting}`);
  const primary = await startRedisServer({ args: [...args, '--repl-diskless-sync-delay', '0'] });
  const line = await startTcpProxy(primary.port);
  const replica = await startRedisServer({ args: ['--replicaof', '127.0.0.1', `${line.port}`] });
  const promoted = new Redis(replica.port);
  const stores = [primary, replica].map(({ url }) =>
    openStore({ kind: 'redis', url, deadlineMs: DEADLINE_MS }),
  );
  const [old, young] = stores;
  try {
    while (!(await promoted.info('replication')).includes('master_link_status:up')) await pause(20);
    if (old !== undefined) await untilAdmitted(old, 'warm');
    line.set({ kind: 'black hole' });
    await promoted.replicaof('NO', 'ONE');
    if (young !== undefined) await untilAdmitted(young, 'warm');

    const seconds: { admitted: number; degraded: number; charges: number }[] = [];
    for (let second = 0; second < SPLIT_SECONDS; second++) {
      const endMs = performance.now() + 1000;
      // A bucket of its own for each second: no window of one holds points of another.
      seconds.push(countOf(await Promise.all(stores.map((store) => spend(store, `split${second}`, endMs)))));
    }
    const fullest = (some: typeof seconds) => Math.max(...some.map(({ admitted }) => admitted)) / LIMIT;
    const degraded = seconds.reduce((sum, { degraded }) => sum + degraded, 0);
    const charges = seconds.reduce((sum, { charges }) => sum + charges, 0);
    return {
      fault: 'split brain',
      setting,
      atFirst: fullest(seconds.slice(0, FIRST_SECONDS)),
      later: fullest(seconds.slice(FIRST_SECONDS)),
      degradedShare: degraded / charges,
    };
  } finally {
    promoted.disconnect();
    for (const store of stores) await store.close();
    await line.stop();
    for (const server of [replica, primary]) await server.stop();
  }
}

/** One and a half times the limit, spread over the second, of a window of a minute. */
async function spend(store: Store, id: string, endMs: number): Promise<Decision[]> {
  const decisions: Decision[] = [];
  for (let turn = 0; turn < LIMIT * 1.5; turn++) {
    decisions.push(await store.charge(chargeOf(id, 60)));
    if (turn % 15 === 0) await pause(Math.max(0, (endMs - performance.now()) / 15));
  }
  await pause(Math.max(0, endMs - performance.now()));
  return decisions;
}

function countOf(decisions: readonly (readonly Decision[])[]) {
  const outcomes = decisions.flat().map(({ outcome }) => outcome);
  return {
    admitted: outcomes.filter((outcome) => outcome === 'admitted').length,
    degraded: outcomes.filter((outcome) => outcome === 'uncounted').length,
    charges: outcomes.length,
  };
}

/**
 * One Account is charged while many others fill a Redis beyond its memory; its window outlasts the run. Without the memory
 * of denials, which would hide an evicted bucket from this one gateway for up to a second.
 */
async function eviction(policy: string): Promise<FaultRow> {
  console.log(`eviction: ${policy}`);
  const server = await startRedisServer({ args: ['--maxmemory', '4mb', '--maxmemory-policy', policy] });
  const client = new Redis(server.port);
  const outcomes: string[] = [];
  let degraded = 0;
  try {
    for (let turn = 0; turn < EVICTION_TURNS; turn++) {
      const others = Array.from({ length: OTHERS }, (_, index) =>
        runCharges(client, [chargeOf(`other${turn}-${index}`, 600)]),
      );
      const hot = runCharges(client, [chargeOf('hot', 300)]);
      const [first, ...rest] = await Promise.allSettled([hot, ...others]);
      degraded += [first, ...rest].filter(({ status }) => status === 'rejected').length;
      outcomes.push((first.status === 'fulfilled' ? first.value[0]?.outcome : undefined) ?? 'uncounted');
    }
    const admittedIn = (some: readonly string[]) => some.filter((outcome) => outcome === 'admitted').length;
    return {
      fault: 'memory is short',
      setting: `maxmemory-policy ${policy}`,
      atFirst: admittedIn(outcomes.slice(0, EVICTION_TURNS / 4)) / LIMIT,
      later: admittedIn(outcomes) / LIMIT,
      degradedShare: degraded / (EVICTION_TURNS * (OTHERS + 1)),
    };
  } finally {
    client.disconnect();
    await server.stop();
  }
}
