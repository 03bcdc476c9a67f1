import { Redis } from 'ioredis';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store } from '../../src/store/store.ts';
import { startRedisCluster } from '../../test/fixtures/redis-cluster.ts';

/** Charges of many Organizations, one after the other, in a Redis Cluster. */
export interface ClusterRow {
  readonly concurrency: number;
  readonly decisionsPerSecond: number;
  readonly clientUs: number;
  /** Decisions that arrive in one read of a node: one, where each call is written by itself. */
  readonly decisionsPerRead: number;
}

const NODES = 6;
const ORGANIZATIONS = 1000;
const ROUND_MS = 1500;

export async function measureCluster(): Promise<ClusterRow[]> {
  const { urls, masters, stop } = await startRedisCluster(0, NODES);
  const admins = masters.map(({ port }) => new Redis(port));
  const store = openStore({ kind: 'cluster', nodes: urls, deadlineMs: 5000 });
  try {
    await run(store, ORGANIZATIONS, ROUND_MS);
    const rows: ClusterRow[] = [];
    for (const concurrency of [1, 16, 64, 256]) {
      console.log(`cluster of ${NODES} nodes, ${ORGANIZATIONS} organizations: ${concurrency} at once`);
      const [readsBefore, cpuBefore] = [await readsOf(admins), process.cpuUsage()];
      const startMs = performance.now();
      const decisions = await run(store, concurrency, ROUND_MS);
      const seconds = (performance.now() - startMs) / 1000;
      const cpu = process.cpuUsage(cpuBefore);
      rows.push({
        concurrency,
        decisionsPerSecond: decisions / seconds,
        clientUs: (cpu.user + cpu.system) / decisions,
        decisionsPerRead: decisions / ((await readsOf(admins)) - readsBefore),
      });
    }
    return rows;
  } finally {
    await store.close();
    for (const admin of admins) admin.disconnect();
    await stop();
  }
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
        const buckets = [
          {
            key: bucketKey('c', organization, 'account-read', organization),
            limit: 1_000_000,
            windowSeconds: 1,
          },
          {
            key: bucketKey('c', organization, 'organization-read', organization),
            limit: 1_000_000_000,
            windowSeconds: 1,
          },
        ];
        return store.charge({ buckets, cost: 1 });
      }),
    );
  }
  return next;
}
