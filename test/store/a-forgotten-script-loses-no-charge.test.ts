/** A Redis that forgets its scripts (SCRIPT FLUSH, a failover) says so (NOSCRIPT), and gets them again: no caller notices. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { Redis as Client } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore, type StoreSettings } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { silentObserver } from '../../src/store/store-observer.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';

const OWNERS = 20;
const TURNS = 60;
const LIMIT = 1_000_000;
/** Longer than any pause of a busy machine. */
const deadlineMs = 60_000;

interface Running {
  readonly settings: StoreSettings;
  readonly servers: readonly Redis[];
  stop(): Promise<void>;
}

const topologies: readonly { readonly name: string; start(): Promise<Running> }[] = [
  {
    name: 'one Redis',
    async start() {
      const server = await startRedisServer();
      const admin = new Client(server.port);
      return {
        settings: { kind: 'redis', url: server.url, deadlineMs },
        servers: [admin],
        async stop() {
          admin.disconnect();
          await server.stop();
        },
      };
    },
  },
  {
    name: 'a Cluster',
    async start() {
      const { urls, clients, stop } = await startRedisCluster();
      return { settings: { kind: 'cluster', nodes: urls, deadlineMs }, servers: clients, stop };
    },
  },
];

function chargeOf(owner: number): Charge {
  const key = bucketKey('weir', `org_${owner}`, 'account-read', `${owner}`);
  return { buckets: [{ key, limit: LIMIT, windowSeconds: 3_600 }], cost: 1 };
}

function chargeAll(store: Store) {
  return Promise.all(Array.from({ length: OWNERS }, (_, owner) => store.charge(chargeOf(owner))));
}

async function usedBy(store: Store, owner: number): Promise<number> {
  const decision = await store.peek(chargeOf(owner));
  if (decision.outcome === 'uncounted') throw new Error(decision.reason);
  return LIMIT - (decision.buckets[0]?.remaining ?? 0);
}

describe.each(topologies)('$name', ({ start }) => {
  test('that forgets its scripts, with calls in progress, counts each charge once', async () => {
    const { settings, servers, stop } = await start();
    const reasons: string[] = [];
    const observer = { ...silentObserver, uncounted: (reason: string) => void reasons.push(reason) };
    const store = openStore(settings, observer);
    onTestFinished(async () => {
      await store.close();
      await stop();
    });
    while ((await chargeAll(store)).some(({ outcome }) => outcome !== 'admitted')) await pause(5);
    reasons.length = 0;
    const before = await Promise.all(Array.from({ length: OWNERS }, (_, owner) => usedBy(store, owner)));
    const turns: ReturnType<typeof chargeAll>[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      turns.push(chargeAll(store));
      // Some turns of charges are under way when the scripts are lost, and some follow without one.
      if (turn % 3 === 0) await Promise.all(servers.map((server) => server.script('FLUSH')));
      else await new Promise(setImmediate);
    }
    const outcomes = (await Promise.all(turns)).flat().map(({ outcome }) => outcome);
    expect([reasons, new Set(outcomes)]).toEqual([[], new Set(['admitted'])]);
    for (const [owner, used] of before.entries()) expect(await usedBy(store, owner)).toBe(used + TURNS);
  });
});
