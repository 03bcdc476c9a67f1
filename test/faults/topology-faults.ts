import { Redis } from 'ioredis';
import { expect, vi } from 'vitest';
import { type RedisClusterFixture, startRedisCluster, untilInfo } from '../fixtures/redis-cluster.ts';
import { startSentinel } from '../fixtures/redis-sentinel.ts';
import { DEADLINE_MS, type Fault } from './fault.ts';

const clusterDown: Fault = {
  name: 'CLUSTERDOWN: a master without a replica is killed',
  reasons: ['clusterdown'],
  alsoPossible: ['disconnected', 'redirected', 'deadline'],
  async start() {
    const cluster = await startRedisCluster();
    const [dead] = cluster.masters;
    const [, witness] = cluster.clients;
    return {
      settings: { kind: 'cluster', nodes: cluster.urls, deadlineMs: DEADLINE_MS },
      async break() {
        await dead?.kill();
        if (witness !== undefined) await untilInfo(witness, 'cluster_state:fail');
      },
      async repair() {
        await dead?.start();
        // The master that returns takes no writes for two seconds more than the others think.
        for (const client of cluster.clients) await untilInfo(client, 'cluster_state:ok');
      },
      stop: () => cluster.stop(),
    };
  },
};

const migration: Fault = {
  name: 'MOVED and ASK: slots migrate under load',
  reasons: [],
  alsoPossible: ['redirected'],
  async start() {
    const cluster = await startRedisCluster();
    return {
      settings: { kind: 'cluster', nodes: cluster.urls, deadlineMs: DEADLINE_MS },
      break: () => migrateBusySlots(cluster),
      repair: async () => {},
      stop: () => cluster.stop(),
    };
  },
};

/**
 * Moves every slot that has keys to the next master, keys and all, as redis-cli does. A master that does not know the greatest epoch
 * takes a slot without a greater one, and loses it to a late message of the one before, so all have to agree before it takes any.
 */
async function migrateBusySlots({ clients, masters }: RedisClusterFixture): Promise<void> {
  const ids = await Promise.all(clients.map((client) => client.call('CLUSTER', 'MYID').then(String)));
  for (const [index, source] of clients.entries()) {
    const to = (index + 1) % clients.length;
    const [target, server, sourceId = '', targetId = ''] = [clients[to], masters[to], ids[index], ids[to]];
    if (target === undefined || server === undefined) continue;
    await untilOneEpoch(clients);
    const keys = await source.keys('*');
    const slots = new Set(await Promise.all(keys.map((key) => source.cluster('KEYSLOT', key))));
    for (const slot of slots) {
      await target.cluster('SETSLOT', slot, 'IMPORTING', sourceId);
      await source.cluster('SETSLOT', slot, 'MIGRATING', targetId);
      const moving = await source.cluster('GETKEYSINSLOT', slot, 1000);
      for (const key of moving) await source.call('MIGRATE', '127.0.0.1', server.port, key, 0, 1000);
      for (const client of [target, source, ...clients])
        await client.cluster('SETSLOT', slot, 'NODE', targetId);
    }
  }
}

async function untilOneEpoch(clients: readonly Redis[]): Promise<void> {
  const haveOne = async () => {
    const infos = await Promise.all(clients.map((client) => client.cluster('INFO').then(String)));
    const epochs = infos.map((info) => /cluster_current_epoch:(\d+)/.exec(info)?.[1]);
    expect(new Set(epochs).size, `the masters know the epochs ${epochs}`).toBe(1);
  };
  await vi.waitFor(haveOne, { timeout: 20_000, interval: 20 });
}

const failover: Fault = {
  name: 'Sentinel failover: the primary is killed',
  reasons: ['disconnected'],
  alsoPossible: ['readonly', 'deadline', 'loading'],
  async start() {
    const { sentinelUrls, name, primary, replica, stop } = await startSentinel();
    return {
      settings: { kind: 'sentinel', sentinels: sentinelUrls, name, deadlineMs: DEADLINE_MS },
      break: () => primary.kill(),
      repair: () => untilPrimary(replica.port),
      stop,
    };
  },
};

async function untilPrimary(port: number): Promise<void> {
  const client = new Redis(port);
  const giveUpMs = performance.now() + 20_000;
  while (!String(await client.info('replication')).includes('role:master')) {
    if (performance.now() > giveUpMs) throw new Error('the Sentinel never promoted the replica');
  }
  client.disconnect();
}

export const topologyFaults: readonly Fault[] = [clusterDown, migration, failover];
