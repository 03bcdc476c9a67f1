/** A settlement is applied once, whatever becomes of the connection, and no replica refuses by a denial that it made wrong. */
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { pace } from '../../src/domain/pace.ts';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import { withScripts } from '../../src/store/redis/scripts.ts';
import { sendSettlements } from '../../src/store/redis/send-settlements.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { silentObserver } from '../../src/store/store-observer.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runCharges, TEST_LIFE_MS } from '../fixtures/run-charges.ts';
import { startTcpProxy } from '../fixtures/tcp-proxy.ts';

function chargeOf(prefix: string, cost: number): Charge {
  return { buckets: [{ key: bucketKey(prefix, 'o', 'tokens', 'o'), limit: 100, windowSeconds: 600 }], cost };
}

/** The first charge that is counted: a store connects in its own time. */
async function admitted(store: Store, charge: Charge) {
  for (;;) {
    const decision = await store.charge(charge);
    if (decision.outcome === 'admitted')
      return { charge, chargedAtUs: decision.chargedAtUs, refundsRequests: false };
    if (decision.outcome === 'denied') throw new Error('denied');
    await pause(20);
  }
}

test('the next charge can use what a settlement gave back, although a denial was cached', async () => {
  const settings = uniqueRedisStore();
  const store = openStore(settings);
  onTestFinished(() => store.close());
  const made = await admitted(store, chargeOf(settings.keyPrefix, 100));
  const small = chargeOf(settings.keyPrefix, 10);
  expect((await store.charge(small)).outcome).toBe('denied');
  expect(await store.settle({ ...made, cost: 80, id: 'one' })).toMatchObject({
    outcome: 'settled',
    buckets: [{ remaining: 20 }],
  });
  expect((await store.charge(small)).outcome).toBe('admitted');
});

test('a settlement of a turn is applied behind its charges, and a closed store has sent it', async () => {
  const settings = uniqueRedisStore();
  const store = openStore(settings);
  const made = await admitted(store, chargeOf(settings.keyPrefix, 100));
  const settled = store.settle({ ...made, cost: 0, id: 'one' });
  const denied = store.charge(chargeOf(settings.keyPrefix, 1));
  await store.close();
  expect(await settled).toMatchObject({ outcome: 'settled' });
  expect((await denied).outcome).toBe('denied');
});

test('settlements wait while Redis is away, and are applied once when it is back', async () => {
  const server = await startRedisServer();
  const admin = new Redis(server.port);
  const dropped: string[] = [];
  const store = openStore(
    { kind: 'redis', url: server.url, deadlineMs: 5_000 },
    { ...silentObserver, settlementDropped: (reason) => dropped.push(reason) },
  );
  onTestFinished(async () => {
    await store.close();
    admin.disconnect();
    await server.stop();
  });
  const charges = [];
  for (let count = 0; count < 20; count++) charges.push(await admitted(store, chargeOf('w', 5)));
  const settled = charges.map((made, index) => {
    // Connections end while calls are under way, and while they wait.
    if (index % 4 === 0) void admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    return pause(index * 10).then(() => store.settle({ ...made, cost: 2, id: `s-${index}` }));
  });
  const outcomes = (await Promise.all(settled)).map(({ outcome }) => outcome);
  expect([...new Set(outcomes)]).toEqual(['settled']);
  expect(dropped).toEqual([]);
  expect(await store.peek(chargeOf('w', 1))).toMatchObject({ buckets: [{ remaining: 60 }] });
});

test('settlements that have waited are sent as soon as Redis is back', async () => {
  const usual = pace.settlements;
  Object.assign(pace, { settlements: { firstMs: 3_600_000, longestMs: 3_600_000 } });
  onTestFinished(() => void Object.assign(pace, { settlements: usual }));
  const { line, first, settlement, remaining } = await startTwo();
  line.set({ kind: 'black hole' });
  line.hangUp();
  await expect.poll(async () => (await first.charge(settlement.charge)).outcome).toBe('uncounted');
  const settled = first.settle(settlement);
  await pause(50);
  line.set({ kind: 'open' });
  line.hangUp();
  expect(await settled).toMatchObject({ outcome: 'settled' });
  expect(await remaining()).toBe(79);
});

/** Two replicas. The connection of the first one can be disturbed. */
async function startTwo() {
  const settings = uniqueRedisStore();
  const line = await startTcpProxy(Number(new URL(settings.url).port));
  const [first, second] = [`redis://127.0.0.1:${line.port}`, settings.url].map((url) =>
    openStore({ ...settings, url }),
  );
  if (first === undefined || second === undefined) throw new Error('there is no store');
  onTestFinished(async () => {
    await first.close();
    await second.close();
    await line.stop();
  });
  const charge = chargeOf(settings.keyPrefix, 50);
  const made = await admitted(first, charge);
  await admitted(second, { ...charge, cost: 1 });
  const remaining = async () => {
    const decision = await second.peek({ ...charge, cost: 1 });
    return decision.outcome === 'uncounted' ? decision.reason : decision.buckets[0]?.remaining;
  };
  return { line, first, second, settlement: { ...made, cost: 20, id: 'one' }, remaining };
}

test('a settlement that another replica has applied while the connection was broken is not counted again', async () => {
  const { line, first, second, settlement, remaining } = await startTwo();
  line.set({ kind: 'black hole' });
  const settled = first.settle(settlement);
  expect(await second.settle(settlement)).toMatchObject({ outcome: 'settled' });
  line.hangUp();
  line.set({ kind: 'open' });
  expect(await settled).toMatchObject({ outcome: 'already', buckets: [{ remaining: 79 }] });
  expect(await remaining()).toBe(79);
});

test('of two settlements of one charge, the one that was applied is counted, although its answer was lost', async () => {
  const { line, first, second, settlement, remaining } = await startTwo();
  line.set({ kind: 'answers held' });
  const settled = [first.settle(settlement), first.settle(settlement)];
  await expect.poll(remaining).toBe(79);
  expect(await second.settle(settlement)).toMatchObject({ outcome: 'already' });
  line.hangUp();
  line.set({ kind: 'open' });
  expect((await Promise.all(settled)).map(({ outcome }) => outcome)).toEqual(['settled', 'already']);
  expect(await remaining()).toBe(79);
});

test('a settlement that Redis never answers is dropped once its points count in no window', async () => {
  const server = await startRedisServer();
  const dropped: string[] = [];
  const store = openStore(
    { kind: 'redis', url: server.url, deadlineMs: 5_000 },
    { ...silentObserver, settlementDropped: (reason) => dropped.push(reason) },
  );
  onTestFinished(() => store.close());
  const [bucket] = chargeOf('w', 1).buckets;
  if (bucket === undefined) throw new Error('no bucket');
  const made = await admitted(store, { buckets: [{ ...bucket, windowSeconds: 1 }], cost: 5 });
  await server.stop();
  expect(await store.settle({ ...made, cost: 1, id: 'lost' })).toEqual({
    outcome: 'dropped',
    reason: 'expired',
  });
  expect(dropped).toEqual(['expired']);
});

test('a settlement that a hanging Redis has not answered is dropped when the store is closed', async () => {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const dropped: string[] = [];
  const store = openStore(
    { kind: 'redis', url: server.url, deadlineMs: 5_000 },
    { ...silentObserver, settlementDropped: (reason) => dropped.push(reason) },
  );
  const made = await admitted(store, chargeOf('w', 5));
  server.signal('SIGSTOP');
  const settled = store.settle({ ...made, cost: 2, id: 'hanging' });
  await store.close();
  expect(await settled).toEqual({ outcome: 'dropped', reason: 'closed' });
  expect(dropped).toEqual(['closed']);
});

test('a refund of a whole bucket writes it twice at most, however many charges it takes', async () => {
  const server = await startRedisServer();
  const admin = new Redis(server.port);
  onTestFinished(async () => {
    admin.disconnect();
    await server.stop();
  });
  const charge = {
    buckets: [{ key: bucketKey('w', 'o', 'tokens', 'o'), limit: 500, windowSeconds: 600 }],
    cost: 1,
  };
  const startUs = 1_790_000_000_000_000;
  for (let count = 0; count < 300; count++)
    await runCharges(admin, [charge], { nowUs: startUs + count * 1_900_000 });
  const writes = async () =>
    Number(/cmdstat_psetex:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0);
  const before = await writes();
  const refund = {
    charge: { ...charge, cost: 299 },
    chargedAtUs: undefined,
    cost: 0,
    refundsRequests: false,
    id: 'r',
  };
  const options = { markedMs: 1_000, nowUs: startUs + 580_000_000, lifeMs: TEST_LIFE_MS };
  expect(await sendSettlements(withScripts(admin), [refund], options)).toMatchObject([
    { buckets: [{ remaining: 499 }] },
  ]);
  // One of them is the mark.
  expect((await writes()) - before).toBeLessThanOrEqual(3);
});
