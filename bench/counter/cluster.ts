import { Redis } from 'ioredis';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { startRedisCluster } from '../../test/fixtures/redis-cluster.ts';
import { twoBuckets } from '../load/two-buckets.ts';
import { table, thousands } from '../report/section.ts';

const NODES = 6;
const ORGANIZATIONS = 1000;
const ROUND_MS = 1500;
const LIMITS = { account: 1_000_000, organization: 1_000_000_000 };

/** Charges of many Organizations, one after the other, in a Redis Cluster. */
export async function measureCluster(): Promise<string[]> {
  const { urls, masters, stop } = await startRedisCluster(0, NODES);
  const admins = masters.map(({ port }) => new Redis(port));
  const store = openStore({ kind: 'cluster', nodes: urls, deadlineMs: 5000 });
  const rows: string[][] = [];
  try {
    await run(store, ORGANIZATIONS, ROUND_MS);
    for (const concurrency of [1, 16, 64, 256]) {
      console.log(`cluster of ${NODES} nodes, ${ORGANIZATIONS} organizations: ${concurrency} at once`);
      const [readsBefore, cpuBefore] = [await readsOf(admins), process.cpuUsage()];
      const startMs = performance.now();
      const decisions = await run(store, concurrency, ROUND_MS);
      const perSecond = (decisions * 1000) / (performance.now() - startMs);
      const cpu = process.cpuUsage(cpuBefore);
      const perRead = decisions / ((await readsOf(admins)) - readsBefore);
      const clientUs = (cpu.user + cpu.system) / decisions;
      rows.push([`${concurrency}`, thousands(perSecond), perRead.toFixed(1), clientUs.toFixed(1)]);
    }
  } finally {
    await store.close();
    for (const admin of admins) admin.disconnect();
    await stop();
  }
  return [
    '**In a Cluster of six nodes.** Two buckets, 1,000 organizations in turn. A call cannot span slots, so nearly every decision is a call of its own.',
    'Calls of one turn that go to one node leave in one write.',
    '',
    ...table(['at once:', 'decisions/s:', 'decisions in one read of a node:', 'client CPU, µs:'], rows),
  ];
}

async function readsOf(admins: readonly Redis[]): Promise<number> {
  const infos = await Promise.all(admins.map((admin) => admin.info('stats')));
  return infos.reduce((sum, info) => sum + Number(/total_reads_processed:(\d+)/.exec(info)?.[1]), 0);
}

/** `concurrency` charges at a time, all of one turn. */
async function run(store: Store, concurrency: number, forMs: number): Promise<number> {
  const endMs = performance.now() + forMs;
  let next = 0;
  for (; performance.now() < endMs; next += concurrency) {
    await Promise.all(
      Array.from({ length: concurrency }, (_, index) => {
        const organization = `org_${(next + index) % ORGANIZATIONS}`;
        const buckets = twoBuckets('c', organization, organization, LIMITS);
        return store.charge({ buckets, cost: 1 });
      }),
    );
  }
  return next;
}
