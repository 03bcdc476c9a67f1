import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { followStore, openStore, type StoreSettings } from '../../src/store/open-store.ts';
import type { Marks } from '../../src/store/redis/marks.ts';
import type { Store } from '../../src/store/store.ts';
import { type StoreObserver, silentObserver } from '../../src/store/store-observer.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { startTlsRedis } from '../fixtures/redis-tls.ts';

type Checked = Record<string, string | undefined>;

/** What a store that connects to this Redis reports of its settings, by setting; of a Cluster, the node checked last. */
function checkedAt(settings: StoreSettings): Checked {
  return opened(settings).checked;
}

function opened(settings: StoreSettings, marks?: Marks): { store: Store; checked: Checked } {
  const checked: Checked = {};
  const observer: StoreObserver = {
    ...silentObserver,
    settingChecked: (_route, setting, risk) => {
      checked[setting] = risk;
    },
  };
  const store = openStore(settings, observer, marks);
  onTestFinished(() => store.close());
  return { store, checked };
}

async function startServer(...args: string[]) {
  const server = await startRedisServer({ args });
  onTestFinished(() => server.stop());
  return server;
}

const deadlineMs = 5000;
const SAFE = { 'maxmemory-policy': undefined, 'min-replicas': undefined };

test.each(['volatile-ttl', 'volatile-lru', 'allkeys-lru', 'allkeys-random'])(
  'a Redis whose policy is %s is reported: it may drop buckets',
  async (policy) => {
    const { url } = await startServer('--maxmemory-policy', policy);
    const checked = checkedAt({ kind: 'redis', url, deadlineMs });
    await expect.poll(() => checked['maxmemory-policy']).toContain(`maxmemory-policy is ${policy}`);
  },
);

test('a Redis that evicts nothing and has no replicas is safe', async () => {
  const { url } = await startServer('--maxmemory-policy', 'noeviction');
  const checked = checkedAt({ kind: 'redis', url, deadlineMs });
  await expect.poll(() => checked).toStrictEqual(SAFE);
});

test('a primary with a replica is reported until it needs one to write', async () => {
  const primary = await startServer('--repl-diskless-sync-delay', '0');
  await startServer('--replicaof', '127.0.0.1', `${primary.port}`);
  const admin = new Redis(primary.port);
  onTestFinished(() => admin.disconnect());
  await expect.poll(() => admin.info('replication'), { timeout: 60_000 }).toContain('connected_slaves:1');
  const { url } = primary;
  const checked = checkedAt({ kind: 'redis', url, deadlineMs });
  await expect.poll(() => checked['min-replicas']).toContain('min-replicas-to-write is 0');

  await admin.config('SET', 'min-replicas-to-write', '1');
  await admin.config('SET', 'min-replicas-max-lag', '5');
  const again = checkedAt({ kind: 'redis', url, deadlineMs });
  await expect.poll(() => again).toStrictEqual(SAFE);
});

test('a setting that changes while Weir is connected is reported, and no longer once it is safe', async () => {
  const { url, port } = await startServer('--maxmemory-policy', 'noeviction');
  const admin = new Redis(port);
  onTestFinished(() => admin.disconnect());
  const checked = checkedAt({ kind: 'redis', url, deadlineMs });
  await expect.poll(() => checked).toStrictEqual(SAFE);
  await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await expect.poll(() => checked['maxmemory-policy']).toContain('maxmemory-policy is allkeys-lru');
  await admin.config('SET', 'maxmemory-policy', 'noeviction');
  await expect.poll(() => checked).toStrictEqual(SAFE);
});

test('a primary that gets its first replica is reported, and no longer once it is a replica', async () => {
  const primary = await startServer('--repl-diskless-sync-delay', '0');
  const checked = checkedAt({ kind: 'redis', url: primary.url, deadlineMs });
  await expect.poll(() => checked).toStrictEqual(SAFE);
  const replica = await startServer('--replicaof', '127.0.0.1', `${primary.port}`);
  await expect
    .poll(() => checked['min-replicas'], { timeout: 60_000 })
    .toContain('min-replicas-to-write is 0');
  const admin = new Redis(primary.port);
  onTestFinished(() => admin.disconnect());
  await admin.replicaof('127.0.0.1', replica.port);
  await expect.poll(() => checked).toStrictEqual(SAFE);
});

test('every node of a Cluster is checked', async () => {
  const { urls, clients, stop } = await startRedisCluster();
  onTestFinished(stop);
  await clients[2]?.config('SET', 'maxmemory-policy', 'allkeys-lfu');
  const risks = new Map<string, string | undefined>();
  const store = openStore(
    { kind: 'cluster', nodes: urls, deadlineMs },
    {
      ...silentObserver,
      settingChecked(route, setting, risk) {
        if (setting === 'maxmemory-policy') risks.set(route, risk);
      },
    },
  );
  onTestFinished(() => store.close());
  await expect.poll(() => risks.size).toBe(3);
  expect([...risks.values()].filter((risk) => risk?.includes('allkeys-lfu'))).toHaveLength(1);
});

test('a user without INFO permission is served, and nothing is reported', async () => {
  const { url, caFile, username, password, stop } = await startTlsRedis();
  onTestFinished(stop);
  const { store, checked } = opened({ kind: 'redis', url, deadlineMs, username, password, tls: { caFile } });
  const charge = { buckets: [{ key: 'k', limit: 5, windowSeconds: 1 }], cost: 1 };
  await expect.poll(async () => (await store.charge(charge)).outcome).toBe('admitted');
  expect(checked).toStrictEqual({});
});

test('with a journal, a user without INFO permission is reported, because only an empty Redis is noticed, until it has it', async () => {
  const user = 'weir on >secret ~* &* +@all -info'.split(' ');
  const { url, port } = await startServer('--user', ...user);
  const settings = { kind: 'redis', url, deadlineMs, username: 'weir', password: 'secret' } as const;
  const followed = followStore(settings, 'weir', { missing() {}, arrived() {}, left() {} });
  const { checked } = opened(settings, followed?.marks);
  await expect.poll(() => checked['replication-id']).toContain('INFO shows no master_replid');
  const admin = new Redis(port);
  onTestFinished(() => admin.disconnect());
  await admin.call('ACL', 'SETUSER', 'weir', '+info');
  followed?.marks.changed();
  await expect.poll(() => checked).toStrictEqual({ 'replication-id': undefined });
});
