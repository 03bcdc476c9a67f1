import calculateSlot from 'cluster-key-slot';
import { expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { uniquePrefix } from '../fixtures/redis-url.ts';

const SLOTS = 16_384;
const MASTERS = 3;

const prefix = uniquePrefix();

function chargeOf(owner: string): Charge {
  const bucket = { limit: 1_000, windowSeconds: 600 };
  return {
    buckets: [
      { key: bucketKey(prefix, owner, 'points', owner), ...bucket },
      { key: bucketKey(prefix, owner, 'requests', owner), ...bucket },
    ],
    cost: 1,
  };
}

function slotOf(owner: string): number {
  return calculateSlot(chargeOf(owner).buckets[0]?.key ?? '');
}

/** Owners of the first master, each in a slot of its own. */
function ownersOfFirst(count: number): readonly string[] {
  const bySlot = new Map<number, string>();
  for (let number = 0; bySlot.size < count; number++) {
    const slot = slotOf(`o${number}`);
    if (slot < SLOTS / MASTERS) bySlot.set(slot, `o${number}`);
  }
  return [...bySlot.values()];
}

const outcomeOf = async (store: Store, owner: string) => {
  const decision = await store.charge(chargeOf(owner));
  return decision.outcome === 'uncounted' ? decision.reason : decision.outcome;
};

test('while a slot is moved with a part of its keys, its charges alone are uncounted', async () => {
  const { clients, masters, urls, stop } = await startRedisCluster(0, MASTERS);
  const store = openStore({ kind: 'cluster', nodes: [...urls], deadlineMs: 5_000 });
  onTestFinished(async () => {
    await store.close();
    await stop();
  });
  const [moving = '', other = ''] = ownersOfFirst(2);
  for (const owner of [moving, other]) await expect.poll(() => outcomeOf(store, owner)).toBe('admitted');
  const [source, target] = clients;
  if (source === undefined || target === undefined) throw new Error('there are no masters');
  const [sourceId, targetId] = await Promise.all([source, target].map((one) => one.call('CLUSTER', 'MYID')));
  await target.cluster('SETSLOT', slotOf(moving), 'IMPORTING', String(sourceId));
  await source.cluster('SETSLOT', slotOf(moving), 'MIGRATING', String(targetId));
  const [key = ''] = await source.cluster('GETKEYSINSLOT', slotOf(moving), 1);
  await source.call('MIGRATE', '127.0.0.1', masters[1]?.port ?? 0, key, 0, 1_000);
  for (let count = 0; count < 5; count++) expect(await outcomeOf(store, moving)).toBe('redirected');
  expect(await outcomeOf(store, other)).toBe('admitted');
  const [last = ''] = await source.cluster('GETKEYSINSLOT', slotOf(moving), 1);
  await source.call('MIGRATE', '127.0.0.1', masters[1]?.port ?? 0, last, 0, 1_000);
  expect(await outcomeOf(store, moving)).toBe('admitted');
});
