import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { pace } from '../../src/domain/pace.ts';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import { sharedByRedis } from '../../src/store/redis/shared/shared-by-redis.ts';
import type { Presence, SeenReplicas } from '../../src/store/shared-store.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { sharedRedisUrl, uniquePrefix, uniqueRedisStore } from '../fixtures/redis-url.ts';

const SOON = { timeout: 30_000, interval: 20 };

type Settings = RemoteStoreSettings & { readonly keyPrefix: string };

function openPresence(settings: Settings, replica: string): Presence {
  return sharedByRedis(settings, () => {}).openPresence(replica);
}

function open(settings: Settings, replica: string): Presence {
  const presence = openPresence(settings, replica);
  onTestFinished(() => presence.close());
  return presence;
}

/** The first answer: nothing is queued while the connection is being made. */
async function first(presence: Presence): Promise<SeenReplicas> {
  for (;;) {
    const seen = await presence.announce().catch(() => undefined);
    if (seen !== undefined) return seen;
    await pause(5);
  }
}

async function testOf(settings: Settings): Promise<void> {
  const [one, other] = [open(settings, 'one'), openPresence(settings, 'other')];
  expect(await first(one)).toEqual({ replicas: 1, isContinued: false });
  expect(await first(other)).toMatchObject({ isContinued: false });
  const announceBoth = async () => {
    await other.announce();
    return one.announce();
  };
  await expect.poll(announceBoth, SOON).toEqual({ replicas: 2, isContinued: true });
  await other.close();
  await expect.poll(() => one.announce(), SOON).toEqual({ replicas: 1, isContinued: true });
}

test('a replica is seen once it has announced itself, and no longer when it has left', () =>
  testOf(uniqueRedisStore()));

test('so it is in a Cluster', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  await testOf({ kind: 'cluster', nodes: cluster.urls, keyPrefix: uniquePrefix(), deadlineMs: 5_000 });
});

test('a replica that stops announcing itself is gone within two seconds, and the list expires', async () => {
  const settings = uniqueRedisStore();
  const [staying, killed] = [open(settings, 'staying'), open(settings, 'killed')];
  await first(killed);
  await first(staying);
  const client = new Redis(sharedRedisUrl());
  onTestFinished(async () => client.disconnect());
  const key = `${settings.keyPrefix}:1:replicas`;
  const lifeMs = await client.pttl(key);
  expect(lifeMs).toBeGreaterThan(0);
  expect(lifeMs).toBeLessThanOrEqual(pace.presenceMs);
  await expect.poll(async () => (await staying.announce()).replicas, SOON).toBe(1);
  await expect.poll(() => client.exists(key), SOON).toBe(0);
});
