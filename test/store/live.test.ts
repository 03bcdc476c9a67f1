import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { silentObserver } from '../../src/store/store-observer.ts';
import { freePort } from '../fixtures/free-port.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';

/** Generous: these tests are of counting, not of a loaded machine's hiccups. */
const DEADLINE_MS = 5000;

function open(url: string, deadlineMs = DEADLINE_MS): Store {
  const store = openStore({ kind: 'redis', url, deadlineMs });
  onTestFinished(() => store.close());
  return store;
}

function chargeOf(prefix: string, cost: number, account = 100, organization?: number): Charge {
  const buckets = [{ key: bucketKey(prefix, 'org', 'account-read', 'a'), limit: account, windowSeconds: 5 }];
  if (organization !== undefined) {
    const key = bucketKey(prefix, 'org', 'organization-read', 'org');
    buckets.push({ key, limit: organization, windowSeconds: 5 });
  }
  return { buckets, cost };
}

/** Resolves to the first answer that the store itself gave. */
async function untilCounted(store: Store, charge: Charge) {
  for (;;) {
    const decision = await store.charge(charge);
    if (decision.outcome !== 'uncounted') return decision;
    await pause(5);
  }
}

test('three concurrent clients admit exactly the limit, and each charge is atomic', async () => {
  const prefix = uniquePrefix();
  const stores = [open(sharedRedisUrl()), open(sharedRedisUrl()), open(sharedRedisUrl())];
  for (const store of stores) await untilCounted(store, chargeOf(`${prefix}warm`, 1));
  const charge = chargeOf(prefix, 7, 100, 1000);
  const decisions = await Promise.all(Array.from({ length: 300 }, (_, i) => stores[i % 3]?.charge(charge)));
  expect(decisions.filter((decision) => decision?.outcome === 'admitted')).toHaveLength(14);
  expect(decisions.filter((decision) => decision?.outcome === 'denied')).toHaveLength(286);
});

test('a full organization leaves the account untouched, and a full account the organization', async () => {
  const prefix = uniquePrefix();
  const store = open(sharedRedisUrl());
  await untilCounted(store, chargeOf(prefix, 6, 100, 10));
  expect((await store.charge(chargeOf(prefix, 6, 100, 10))).outcome).toBe('denied');
  expect((await store.charge(chargeOf(prefix, 6, 10, 100))).outcome).toBe('denied');
  expect(await store.peek(chargeOf(prefix, 1, 100, 100))).toMatchObject({
    outcome: 'admitted',
    buckets: [{ remaining: 94 }, { remaining: 94 }],
  });
});

test('clients that saturate a bucket for three windows never see more than its limit in one', async () => {
  const prefix = uniquePrefix();
  const stores = [open(sharedRedisUrl()), open(sharedRedisUrl()), open(sharedRedisUrl())];
  for (const store of stores) await untilCounted(store, chargeOf(`${prefix}warm`, 1));
  const bucket = { key: bucketKey(prefix, 'a', 'account-read', 'a'), limit: 200, windowSeconds: 1 };
  const admitted: { sentMs: number; receivedMs: number; cost: number }[] = [];
  const endMs = performance.now() + 3000;
  const saturate = async (store: Store, seed: number): Promise<void> => {
    for (let turn = seed; performance.now() < endMs; turn++) {
      const cost = 1 + (turn % 10);
      const sentMs = performance.now();
      const { outcome } = await store.charge({ buckets: [bucket], cost });
      if (outcome === 'admitted') admitted.push({ sentMs, receivedMs: performance.now(), cost });
      if (outcome === 'denied') await pause(1);
    }
  };
  await Promise.all(stores.flatMap((store, index) => [saturate(store, index), saturate(store, index + 4)]));

  // Charges sent after a moment and answered before a window after it lie in one window by any clock.
  for (const { sentMs: startMs } of admitted) {
    const within = admitted.filter(
      ({ sentMs, receivedMs }) => sentMs >= startMs && receivedMs < startMs + 1000,
    );
    expect(within.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(200);
  }
  const total = admitted.reduce((sum, { cost }) => sum + cost, 0);
  expect(total).toBeGreaterThan(3 * 200 * 0.9);
});

test('a store opened before its Redis is uncounted at first, and counts once Redis is up', async () => {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  await server.kill();
  const store = open(server.url);
  expect(await store.charge(chargeOf('p', 1))).toEqual({ outcome: 'uncounted', reason: 'disconnected' });
  await server.start();
  expect((await untilCounted(store, chargeOf('p', 1))).outcome).toBe('admitted');
});

test('a charge in progress when the store closes is uncounted', async () => {
  const store = open(`redis://127.0.0.1:${await freePort()}`);
  const decision = store.charge(chargeOf('p', 1));
  await store.close();
  expect((await decision).outcome).toBe('uncounted');
  expect(await store.charge(chargeOf('p', 1))).toEqual({ outcome: 'uncounted', reason: 'closed' });
});

test('charges of one turn share a call and keep their order, and a bad one does not spoil the others', async () => {
  const prefix = uniquePrefix();
  const calls: number[] = [];
  const called = (decisions: number) => calls.push(decisions);
  const store = openStore(
    { kind: 'redis', url: sharedRedisUrl(), deadlineMs: DEADLINE_MS },
    { ...silentObserver, called },
  );
  onTestFinished(() => store.close());
  await untilCounted(store, chargeOf(`${prefix}warm`, 1));
  calls.length = 0;
  const costs = [90, 20, 10, 1, 1.5];
  const decisions = await Promise.all(costs.map((cost) => store.charge(chargeOf(prefix, cost))));
  const outcomes = decisions.map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['admitted', 'denied', 'admitted', 'denied', 'uncounted']);
  expect(calls).toEqual([4]);
});
