import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, expect, it, onTestFinished, vi } from 'vitest';
import { pace } from '../../src/domain/pace.ts';
import { Hold } from '../../src/store/in-flight/held-slots.ts';
import { bucketKey, SLOTS_ENDING } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import { withScripts } from '../../src/store/redis/scripts.ts';
import type { BucketCharge, Store } from '../../src/store/store.ts';
import { silentObserver } from '../../src/store/store-observer.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { startTcpProxy } from '../fixtures/tcp-proxy.ts';

const client = new Redis(sharedRedisUrl());
const scripts = withScripts(client);
afterAll(() => client.disconnect());

const SOON = { timeout: 20_000, interval: 20 };

function slotsOf(limit: number, more: Partial<BucketCharge> = {}): BucketCharge {
  const key = bucketKey(uniquePrefix(), 'a', `in-flight${SLOTS_ENDING}`, 'a');
  return { key, limit, windowSeconds: 0, counts: 'concurrent', ...more };
}

/** A replica of its own, and what its calls came to. */
function open(port?: number, deadlineMs = 5_000) {
  const url = port === undefined ? sharedRedisUrl() : `redis://127.0.0.1:${port}`;
  const seen = { calls: 0, fromMemory: 0 };
  const store = openStore(
    { kind: 'redis', url, deadlineMs },
    { ...silentObserver, called: () => (seen.calls += 1), deniedFromMemory: () => (seen.fromMemory += 1) },
  );
  onTestFinished(() => store.close());
  return { store, seen };
}

async function counting(store: Store): Promise<void> {
  const buckets = [{ key: uniquePrefix(), limit: 1, windowSeconds: 1 }];
  await vi.waitFor(async () => {
    expect((await store.peek({ buckets, cost: 1 })).outcome).toBe('admitted');
  }, SOON);
}

/** Takes slots until one is refused. */
async function fill(store: Store, ...buckets: BucketCharge[]): Promise<Hold[]> {
  const holds: Hold[] = [];
  for (;;) {
    const hold = new Hold();
    const { outcome } = await store.charge({ buckets, cost: 1, hold });
    if (outcome !== 'admitted') return holds;
    holds.push(hold);
  }
}

async function free(store: Store, bucket: BucketCharge): Promise<number | undefined> {
  const decision = await store.peek({ buckets: [bucket], cost: 1 });
  return decision.outcome === 'uncounted' ? undefined : decision.buckets[0]?.remaining;
}

it('replicas share the slots, a slot that is given back is free at once, and a refusal spends and holds nothing', async () => {
  const [one, other] = [open(), open()];
  for (const { store } of [one, other]) await counting(store);
  const slots = slotsOf(5);
  const points = { key: bucketKey(uniquePrefix(), 'a', 'points', 'a'), limit: 100, windowSeconds: 60 };
  const [first] = await fill(one.store, points, { ...slots, limit: 1 });
  expect(await fill(other.store, points, slots)).toHaveLength(4);
  const denied = await other.store.charge({ buckets: [points, slots], cost: 1, hold: new Hold() });
  expect(denied).toMatchObject({
    outcome: 'denied',
    buckets: [{ remaining: 95 }, { remaining: 0, resetAfterUs: 0, retryAfterUs: 1_000_000 }],
  });
  expect(await free(one.store, slots)).toBe(0);
  first?.end();
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(1), SOON);
  const refused = [{ ...points, limit: 1 }, slots];
  expect(await fill(one.store, ...refused)).toHaveLength(0);
  expect(await free(other.store, slots)).toBe(1);
  // A lower limit admits nothing until enough has ended.
  expect(await fill(one.store, { ...slots, limit: 3 })).toHaveLength(0);
});

it('a replica that holds all slots refuses without a call', async () => {
  const { store, seen } = open();
  await counting(store);
  const slots = slotsOf(3);
  const holds = await fill(store, slots);
  expect(holds).toHaveLength(3);
  const before = seen.fromMemory;
  const refused = await Promise.all(
    Array.from({ length: 50 }, () => store.charge({ buckets: [slots], cost: 1, hold: new Hold() })),
  );
  expect(refused.every(({ outcome }) => outcome === 'denied')).toBe(true);
  expect(seen.fromMemory - before).toBe(50);
  for (const hold of holds) hold.end();
  expect(await fill(store, slots)).toHaveLength(3);
});

it('a request that ends before its answer arrives gives its slot back, once', async () => {
  const { store } = open();
  await counting(store);
  const slots = slotsOf(2);
  const holds = Array.from({ length: 2 }, () => new Hold());
  const decisions = holds.map((hold) => store.charge({ buckets: [slots], cost: 1, hold }));
  for (const hold of holds) hold.end();
  expect((await Promise.all(decisions)).map(({ outcome }) => outcome)).toEqual(['admitted', 'admitted']);
  await vi.waitFor(async () => expect(await free(store, slots)).toBe(2), SOON);
  expect(await fill(store, slots)).toHaveLength(2);
});

it('what a replica that is cut off holds is free once its lease has ended, and is counted again when it returns', async () => {
  const line = await startTcpProxy(Number(new URL(sharedRedisUrl()).port));
  onTestFinished(() => line.stop());
  const [lost, other] = [open(line.port), open()];
  for (const { store } of [lost, other]) await counting(store);
  const slots = slotsOf(4);
  const holds = await fill(lost.store, { ...slots, limit: 3 });
  expect(holds).toHaveLength(3);
  await pause(1.5 * pace.renewalMs);
  line.set({ kind: 'black hole' });
  const cutMs = performance.now();
  expect(await free(other.store, slots)).toBe(1);
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(4), SOON);
  expect(performance.now() - cutMs).toBeGreaterThan(pace.leaseMs / 4);
  line.set({ kind: 'open' });
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(1), SOON);
  for (const hold of holds) hold.end();
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(4), SOON);
});

it('slots that Redis has lost are counted again when their turn comes', async () => {
  const [one, other] = [open(), open()];
  for (const { store } of [one, other]) await counting(store);
  const slots = slotsOf(4);
  await fill(one.store, { ...slots, limit: 3 });
  await client.del(slots.key);
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(1), SOON);
  // A key that holds something else keeps no request waiting, and is right again when it has gone.
  await client.set(slots.key, 'something else');
  expect((await other.store.charge({ buckets: [slots], cost: 1, hold: new Hold() })).outcome).toBe(
    'uncounted',
  );
  await client.del(slots.key);
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(1), SOON);
});

it('slots count for as long as their replica renews itself, although their own lease has ended', async () => {
  const [one, other] = [open(), open()];
  for (const { store } of [one, other]) await counting(store);
  const slots = slotsOf(3);
  const holds = await fill(one.store, { ...slots, limit: 2 });
  await pause(2 * pace.leaseMs);
  const { ends, nowUs } = await leasesOf(slots);
  // Its turn may just have come. If it has not, the lease has ended.
  if ((ends.get(one.store.slots.replica) ?? 0) < nowUs) expect(await free(other.store, slots)).toBe(1);
  expect(await fill(other.store, slots)).toHaveLength(1);
  for (const hold of holds) hold.end();
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(2), SOON);
});

it('in a Cluster, too, slots count for as long as their replica renews itself', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const [one, other] = [1, 2].map(() => {
    const store = openStore({ kind: 'cluster', nodes: cluster.urls, deadlineMs: 5_000 }, silentObserver);
    onTestFinished(() => store.close());
    return store;
  });
  if (one === undefined || other === undefined) throw new Error('there is no store');
  for (const store of [one, other]) await counting(store);
  // In many slots of the Cluster.
  const all = Array.from({ length: 40 }, (_, index) => ({
    ...slotsOf(2),
    key: bucketKey('cluster', `org_${index}`, `in-flight${SLOTS_ENDING}`, 'a'),
  }));
  for (const slots of all) expect(await fill(one, { ...slots, limit: 1 })).toHaveLength(1);
  await pause(2 * pace.leaseMs);
  expect(new Set(await Promise.all(all.map((slots) => free(other, slots))))).toEqual(new Set([1]));
});

it('a charge that leaves no room drops the leases of replicas that are no longer alive', async () => {
  const [lost, other] = [open(), open()];
  for (const { store } of [lost, other]) await counting(store);
  const slots = slotsOf(2);
  await fill(lost.store, slots);
  await lost.store.close();
  await vi.waitFor(async () => expect(await fill(other.store, slots)).toHaveLength(2), SOON);
  expect([...(await leasesOf(slots)).ends.keys()]).toEqual([other.store.slots.replica]);
});

it('renewals have a connection of their own, which is opened when a request is in flight', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const own = new Redis(redis.url);
  onTestFinished(() => own.disconnect());
  const connections = async () => String(await own.client('LIST')).split('name=weir ').length - 1;
  const { store } = open(Number(new URL(redis.url).port));
  await counting(store);
  expect(await connections()).toBe(1);
  const [hold] = await fill(store, slotsOf(1));
  await vi.waitFor(async () => expect(await connections()).toBe(2), SOON);
  hold?.end();
});

it('a key of another type in place of the living replicas is replaced', async () => {
  const { store } = open();
  await counting(store);
  const slots = slotsOf(2);
  const key = slots.key.replace(/:1:.*/, ':1:{slots}:alive');
  await client.set(key, 'something else');
  await fill(store, slots);
  await vi.waitFor(
    async () => expect(await client.zrange(key, '0', '-1')).toEqual([store.slots.replica]),
    SOON,
  );
});

it('requests that are served while no answer comes hold slots as soon as Redis answers, and none when they have ended', async () => {
  const line = await startTcpProxy(Number(new URL(sharedRedisUrl()).port));
  onTestFinished(() => line.stop());
  const [late, other] = [open(line.port, 300), open()];
  for (const { store } of [late, other]) await counting(store);
  const slots = slotsOf(6);
  line.set({ kind: 'answers held' });
  const holds = Array.from({ length: 4 }, () => new Hold());
  for (const hold of holds) {
    const charge = { buckets: [slots], cost: 1, hold };
    expect((await late.store.charge(charge)).outcome).toBe('uncounted');
    late.store.slots.take(charge);
  }
  expect(late.store.slots.of(slots.key)).toBe(4);
  holds[0]?.end();
  line.set({ kind: 'open' });
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(3), SOON);
  await pause(1.5 * pace.renewalMs);
  expect(await free(other.store, slots)).toBe(3);
  for (const hold of holds.slice(1)) hold.end();
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(6), SOON);
});

it('charges that are held for a time and answered too late take no slots, and spend what they cost', async () => {
  const line = await startTcpProxy(Number(new URL(sharedRedisUrl()).port));
  onTestFinished(() => line.stop());
  const [late, other] = [open(line.port, 300), open()];
  for (const { store } of [late, other]) await counting(store);
  const points = { key: bucketKey(uniquePrefix(), 'a', 'points', 'a'), limit: 100, windowSeconds: 600 };
  const slots = { ...slotsOf(6), key: points.key.replace(':points:', `:in-flight${SLOTS_ENDING}:`) };
  const shadow = { ...slots, key: slots.key.replace('in-flight', 'shadow'), limit: 2, shadow: true };
  const held = { buckets: [points, slots, shadow], cost: 5, heldMs: 600_000 };
  expect((await other.store.charge(held)).outcome).toBe('admitted');
  line.set({ kind: 'answers held' });
  const decisions = await Promise.all(Array.from({ length: 3 }, () => late.store.charge(held)));
  expect(decisions.map(({ outcome }) => outcome)).toEqual(['uncounted', 'uncounted', 'uncounted']);
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(2), SOON);
  line.set({ kind: 'open' });
  await vi.waitFor(async () => expect(await free(other.store, slots)).toBe(5), SOON);
  expect(await free(other.store, shadow)).toBe(1);
  expect(await free(other.store, points)).toBe(80);
});

it('a lease ends a fixed time after its last change, in place or not, and its key does not expire before', async () => {
  const replicas = [open().store, open().store];
  for (const store of replicas) await counting(store);
  const slots = slotsOf(1_000);
  // For longer than a renewal, so that every lease is written whole again.
  for (
    const endMs = performance.now() + 2.5 * pace.renewalMs;
    performance.now() < endMs;
    await pause(40 * Math.random())
  ) {
    for (const store of replicas) {
      const before = await leasesOf(slots);
      const hold = new Hold();
      expect((await store.charge({ buckets: [slots], cost: 1, hold })).outcome).toBe('admitted');
      const { lifeUs, nowUs, ends } = await leasesOf(slots);
      expect(ends.get(store.slots.replica)).toBeGreaterThanOrEqual(before.nowUs + pace.leaseMs * 1_000);
      expect(lifeUs).toBeGreaterThan(Math.max(...ends.values()) - nowUs);
      if (Math.random() < 0.5) hold.end();
    }
  }
});

it('the end of the last request of a replica changes the number of its slots alone, and an earlier one renews the lease', async () => {
  const { key } = slotsOf(1);
  const [one, other] = ['one', 'other'].map((replica) => replica.padEnd(16, '-'));
  const state = async (replica: string | undefined, held: number, ended: number) => {
    const statement = `${replica} 2900 90000,7 ${held} ${ended}`;
    await new Promise((resolve, reject) => {
      const settle = (error: Error | null | undefined) => (error ? reject(error) : resolve(undefined));
      void scripts.chargeBuffer([2, key, `${key}:alive`, '0 1 0 1', statement], settle);
    });
    const { ends, held: slots, lifeUs } = await leasesOf({ key });
    return { slots: Object.fromEntries(slots), end: ends.get(one ?? '') ?? 0, lifeUs };
  };
  await state(other, 5, 0);
  const taken = await state(one, 3, 0);
  const first = await state(one, 0, 2);
  expect(first.slots).toEqual({ [other ?? '']: 5, [one ?? '']: 1 });
  expect(first.end).toBeGreaterThan(taken.end);
  await client.pexpire(key, 50_000);
  // One more than there are.
  const last = await state(one, 0, 2);
  expect(last.slots).toEqual({ [other ?? '']: 5, [one ?? '']: 0 });
  expect(last.end).toBe(first.end);
  expect(last.lifeUs).toBeLessThanOrEqual(50_000_000);
});

it('a statement changes the lease of its replica wherever it is, and the key lives on', async () => {
  const { key } = slotsOf(1);
  const alive = `${key}:alive`;
  const nameOf = (replica: string) => replica.padEnd(16, '-');
  const state = async (replica: string, generation: number, held: number, place: number) => {
    const statement = `${nameOf(replica)} 2900 90000,${generation} ${held} ${place}`;
    return await new Promise((resolve, reject) => {
      const settle = (error: Error | null | undefined, reply: unknown) =>
        error ? reject(error) : resolve(reply);
      void scripts.renew([2, alive, key, statement], settle);
    });
  };
  const held = async () => Object.fromEntries((await leasesOf({ key })).held);
  expect(await state('one', 1, 0, 0)).toEqual([0, 0]);
  expect(await state('one', 2, 5, 0)).toEqual([1, 1]);
  expect(await state('two', 3, 6, 0)).toEqual([0, 34]);
  // One of its own place, one of the other's, one beyond the value, and one that is not the start of a lease.
  for (const [generation, place] of [34, 1, 67, 35].entries())
    expect(await state('two', 10 + generation, 10 + generation, place)).toEqual([1, 34]);
  expect(await held()).toEqual({ [nameOf('one')]: 5, [nameOf('two')]: 13 });
  // An earlier generation changes nothing, by its place and without it.
  for (const place of [34, 0]) expect(await state('two', 12, 1, place)).toEqual([1, 34]);
  expect(await held()).toEqual({ [nameOf('one')]: 5, [nameOf('two')]: 13 });
  // The first lease has gone: others have written the key whole.
  await client.set(key, (await client.getBuffer(key))?.subarray(33) ?? '', 'PX', 50_000);
  expect(await state('two', 20, 7, 34)).toEqual([1, 1]);
  expect(await held()).toEqual({ [nameOf('two')]: 7 });
  expect(await client.pttl(key)).toBeGreaterThan(85_000);
  // A longer life, which slots of no replica need, stays.
  await client.pexpire(key, 600_000);
  expect(await state('two', 21, 8, 1)).toEqual([1, 1]);
  expect(await client.pttl(key)).toBeGreaterThan(590_000);
  await client.del(key);
  expect(await state('two', 22, 9, 1)).toEqual([1, 1]);
  await client.del(key);
  await client.lpush(key, 'another type');
  expect(await state('two', 23, 4, 1)).toEqual([1, 1]);
  expect(await held()).toEqual({ [nameOf('two')]: 4 });
});

it('a Redis user that may not run MGET reads each key separately', async () => {
  const user = 'without-mget';
  await client.acl('SETUSER', user, 'on', '>secret', '~*', '&*', '+@all', '-mget');
  onTestFinished(async () => void (await client.acl('DELUSER', user)));
  const url = new URL(sharedRedisUrl());
  Object.assign(url, { username: user, password: 'secret' });
  const store = openStore({ kind: 'redis', url: url.href, deadlineMs: 5_000 }, silentObserver);
  onTestFinished(() => store.close());
  await counting(store);
  const slots = slotsOf(2);
  const holds = await fill(store, slots);
  expect(holds).toHaveLength(2);
  for (const hold of holds) hold.end();
  await vi.waitFor(async () => expect(await free(store, slots)).toBe(2), SOON);
});

/** Redis's time, how long the key lives yet, and when the lease of each replica ends, µs since 1970: see lua/README.md. */
async function leasesOf({ key }: Pick<BucketCharge, 'key'>) {
  const answers = await client.multi().time().pttl(key).getBuffer(key).exec();
  const [time, lifeMs, value] = (answers ?? []).map(([, answer]) => answer) as [string[], number, Buffer];
  const ends = new Map<string, number>();
  const held = new Map<string, number>();
  for (let entry = 0; entry < (value?.length ?? 0); entry += 33) {
    const replica = value.toString('latin1', entry, entry + 16);
    held.set(replica, value.readUInt32BE(entry + 22));
    ends.set(replica, Number(BigInt(`0x${value.toString('hex', entry + 26, entry + 33)}`)));
  }
  const [seconds, us] = time.map(Number);
  return { nowUs: (seconds ?? 0) * 1_000_000 + (us ?? 0), lifeUs: lifeMs * 1_000, ends, held };
}
