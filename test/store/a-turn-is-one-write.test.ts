import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';

const ORGANIZATIONS = 600;

function chargeOf(organization: number): Charge {
  const key = bucketKey('weir', `org_${organization}`, 'account-read', 'a');
  return { buckets: [{ key, limit: 1_000_000, windowSeconds: 60 }], cost: 1 };
}

/** Charges every Organization in one turn, until a turn was counted whole; resolves to the number of turns. */
async function untilCounted(store: Store): Promise<number> {
  for (let turns = 1; ; turns++) {
    const decisions = await Promise.all(
      Array.from({ length: ORGANIZATIONS }, (_, organization) => store.charge(chargeOf(organization))),
    );
    if (decisions.every(({ outcome }) => outcome === 'admitted')) return turns;
    await pause(10);
  }
}

/** How often the servers have read from their clients, which is how many pieces the calls arrived in. */
async function readsOf(servers: readonly Redis[]): Promise<number> {
  const infos = await Promise.all(servers.map((server) => server.info('stats')));
  return infos.reduce((sum, info) => sum + Number(/total_reads_processed:(\d+)/.exec(info)?.[1]), 0);
}

test('charges of one turn reach each node of a Cluster in one write, however many slots they touch', async () => {
  const { urls, clients, stop } = await startRedisCluster();
  const store = openStore({ kind: 'cluster', nodes: urls, deadlineMs: 60_000 });
  onTestFinished(async () => {
    await store.close();
    await stop();
  });
  // The first turn sends the script as well, and a busy machine may lose a connection.
  await untilCounted(store);
  const before = await readsOf(clients);
  const turns = await untilCounted(store);
  const reads = (await readsOf(clients)) - before;
  // One write is read in pieces of at most 16 kB, which hold some seventy charges.
  expect(reads / turns).toBeLessThan(ORGANIZATIONS / 20);
});
