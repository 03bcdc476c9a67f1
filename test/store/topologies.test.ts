import { spawnSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import type { Charge, Decision, Store } from '../../src/store/store.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { startSentinel } from '../fixtures/redis-sentinel.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { startTlsRedis } from '../fixtures/redis-tls.ts';
import { uniquePrefix } from '../fixtures/redis-url.ts';
import { skipReason } from '../fixtures/skip-reason.ts';
import { openClockedRedis } from './clocked-redis.ts';
import { testsOfConformance } from './conformance.ts';

interface Topology {
  readonly name: string;
  start(): Promise<{ settings: RemoteStoreSettings; stop(): Promise<void> }>;
}

const deadlineMs = 5000;

/** Fewer than redis.test.ts has: the scripts count alike everywhere, and what may differ is whether and where they run. */
const SCENARIOS = 12;

function standalone(name: string, protocol: 2 | 3, binary = 'redis-server'): Topology {
  return {
    name,
    async start() {
      const server = await startRedisServer({ binary });
      return {
        settings: { kind: 'redis', url: server.url, deadlineMs, protocol },
        stop: () => server.stop(),
      };
    },
  };
}

const tls: Topology = {
  name: 'TLS and an ACL user',
  async start() {
    const { url, caFile, username, password, stop } = await startTlsRedis();
    return { settings: { kind: 'redis', url, deadlineMs, username, password, tls: { caFile } }, stop };
  },
};

const sentinel: Topology = {
  name: 'Sentinel',
  async start() {
    const { sentinelUrls, name, stop } = await startSentinel();
    return { settings: { kind: 'sentinel', sentinels: sentinelUrls, name, deadlineMs }, stop };
  },
};

const cluster: Topology = {
  name: 'Cluster of three masters',
  async start() {
    const { urls, stop } = await startRedisCluster();
    return { settings: { kind: 'cluster', nodes: urls, deadlineMs }, stop };
  },
};

const topologies = [standalone('RESP2', 2), standalone('RESP3', 3), tls, sentinel, cluster];
if (spawnSync('valkey-server', ['--version']).status === 0) {
  topologies.push(standalone('Valkey', 3, 'valkey-server'));
} else {
  skipReason('valkey-server is not on PATH: its conformance is not tested here.');
}

describe.each(topologies)('$name', ({ start }) => {
  let running: Awaited<ReturnType<Topology['start']>>;
  let clocked: Awaited<ReturnType<typeof openClockedRedis>>;

  beforeAll(async () => {
    running = await start();
    clocked = await openClockedRedis(running.settings);
  });
  afterAll(async () => {
    clocked.close();
    await running.stop();
  });

  testsOfConformance(async () => ({ store: clocked.store, prefix: uniquePrefix() }), SCENARIOS);

  test('three concurrent gateways admit exactly the limit', async () => {
    const prefix = uniquePrefix();
    const stores = [1, 2, 3].map(() => openStore(running.settings));
    onTestFinished(async () => {
      for (const store of stores) await store.close();
    });
    for (const store of stores) await untilCounted(store, chargeOf(`${prefix}warm`, 'a'));
    const accounts = ['a', 'b', 'c', 'd', 'e'];
    const charges = Array.from({ length: 300 }, (_, i) => ({
      store: stores[i % 3],
      account: accounts[i % 5] ?? '',
    }));
    const outcomes = await Promise.all(
      charges.map(async ({ store, account }) => {
        const decision = await store?.charge(chargeOf(prefix, account));
        return `${account} ${decision?.outcome}`;
      }),
    );
    const admitted = accounts.map(
      (account) => outcomes.filter((text) => text === `${account} admitted`).length,
    );
    const denied = accounts.map((account) => outcomes.filter((text) => text === `${account} denied`).length);
    expect({ admitted, denied }).toEqual({ admitted: [14, 14, 14, 14, 14], denied: [46, 46, 46, 46, 46] });
  });

  test.each([
    ['braces', '}a{b}{'],
    ['colons', 'a:b::'],
    ['unicode', 'ünï💥'],
    ['half a surrogate pair', '\ud800'],
    ['nothing', ''],
    ['10 kB', 'x'.repeat(10_000)],
  ])('an account and its organization with an id of %s are charged together', async (_what, id) => {
    const store = openStore(running.settings);
    onTestFinished(() => store.close());
    expect(await untilCounted(store, chargeOf(uniquePrefix(), id, id))).toMatchObject({
      outcome: 'admitted',
    });
  });
});

/** Cost 7 of an Account's 100 points, of an Organization of its own with room for ten such Accounts. */
function chargeOf(prefix: string, account: string, organization = `org_${account}`): Charge {
  return {
    buckets: [
      { key: bucketKey(prefix, organization, 'account-read', account), limit: 100, windowSeconds: 20 },
      {
        key: bucketKey(prefix, organization, 'organization-read', organization),
        limit: 1000,
        windowSeconds: 20,
      },
    ],
    cost: 7,
  };
}

async function untilCounted(store: Store, charge: Charge): Promise<Decision> {
  for (;;) {
    const decision = await store.charge(charge);
    if (decision.outcome !== 'uncounted') return decision;
    await pause(5);
  }
}
