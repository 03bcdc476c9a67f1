import { Redis } from 'ioredis';
import { expect, it, onTestFinished, vi } from 'vitest';
import { pace } from '../../../src/domain/pace.ts';
import {
  type Holding,
  leftOf,
  openHolding,
  patientStore,
  startHolding,
} from '../../fixtures/held-decisions.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { startRedisServer } from '../../fixtures/redis-server.ts';
import { sharedRedisUrl } from '../../fixtures/redis-url.ts';
import { WRONG_TYPES } from '../../fixtures/wrong-values.ts';

const SOON = { timeout: 30_000, interval: 100 };
const ACCOUNT = 'acct_3';

function connect(url: string): Redis {
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  return redis;
}

const statusOf = async ({ post }: Holding, receipt: string) => (await post({ receipt, cost: 1 })).status;

it('a replica settles the receipts of another one, also those from before a restart of all', async () => {
  const store = patientStore();
  const first = await openHolding(store);
  const receipts = [await first.hold(ACCOUNT, 4_000), await first.hold(ACCOUNT, 4_000)];
  const second = await openHolding(store);
  expect(leftOf(await second.settle(receipts[0] ?? '', 500), 'tokens')).toBe(5_500);
  expect(await first.settle(receipts[0] ?? '', 900)).toMatchObject({ settled: false, reason: 'already' });
  await Promise.all([first.gateway.close(), second.gateway.close()]);
  const third = await startHolding(store);
  expect(leftOf(await third.settle(receipts[1] ?? '', 500), 'tokens')).toBe(9_000);
  await third.hold(ACCOUNT, 1);
  await third.hold(ACCOUNT, 1);
});

it('replicas that start at the same time sign with the same key, which lives for a day in Redis', async () => {
  const store = patientStore();
  const replicas = await Promise.all([1, 2, 3].map(() => startHolding(store)));
  const receipts = await Promise.all(replicas.map(({ hold }) => hold(ACCOUNT, 10, { limits: ['tokens'] })));
  for (const [index, receipt] of receipts.entries()) {
    const settler = replicas[(index + 1) % replicas.length];
    expect(await settler?.settle(receipt, 1)).toMatchObject({ settled: true });
  }
  const redis = connect(sharedRedisUrl());
  const key = `${store.keyPrefix}:1:receipts`;
  expect(await redis.get(key)).toMatch(/^[\w-]{43}$/);
  expect(await redis.pttl(key)).toBeGreaterThan(86_000_000);
});

it('a decision that another replica has settled is counted there alone', async () => {
  const store = patientStore();
  const [first, second] = [await startHolding(store), await startHolding(store)];
  const held = { hold: '2s', limits: ['tokens'] };
  await second.settle(await first.hold(ACCOUNT, 500, held), 20);
  await first.hold(ACCOUNT, 7, held);
  const settlementsAt = ({ gateway }: Holding) => linesOf(gateway, 'settlement');
  await vi.waitFor(() => expect(settlementsAt(first)).toHaveLength(1), SOON);
  // The replica has asked about both by now.
  expect(await first.gateway.metrics()).toMatch(/weir_settlements_total\{outcome="already"\} 1/);
  expect(settlementsAt(first)).toMatchObject([{ settled: 7, outcome: 'ended', limits: ['tokens'] }]);
  expect(settlementsAt(second)).toMatchObject([{ settled: 20, outcome: 'settled', limits: ['tokens'] }]);
});

it('a replica puts the key back that Redis has lost, and replaces what another program wrote there', async () => {
  const store = patientStore();
  const replica = await startHolding(store);
  const receipt = await replica.hold(ACCOUNT, 4_000);
  const redis = connect(sharedRedisUrl());
  const key = `${store.keyPrefix}:1:receipts`;
  const known = await redis.get(key);
  for (const break_ of [
    () => redis.del(key),
    ...WRONG_TYPES.map(
      ({ put }) =>
        () =>
          put(redis, key),
    ),
    () => redis.set(key, 'short'),
    () => redis.set(key, '!'.repeat(43)),
  ]) {
    await break_();
    // An unknown receipt has the replica look for another key.
    await vi.waitFor(async () => {
      await statusOf(replica, 'A'.repeat(200));
      expect(await redis.type(key)).toBe('string');
      expect(await redis.get(key)).toBe(known);
    }, SOON);
  }
  const other = await startHolding(store);
  expect(await other.settle(receipt, 1)).toMatchObject({ settled: true });
});

it('a replica that starts after Redis has lost the keys settles the receipts of the others, and they settle its own', async () => {
  const store = patientStore();
  const first = await openHolding(store);
  const receipts = [await first.hold(ACCOUNT, 400), await first.hold(ACCOUNT, 400)];
  const redis = connect(sharedRedisUrl());
  const lose = () => redis.del(`${store.keyPrefix}:1:receipts`, `${store.keyPrefix}:1:receipt-keys:record`);
  expect(await lose()).toBe(2);
  const second = await startHolding(store);
  expect(await second.settle(receipts[0] ?? '', 5)).toMatchObject({ settled: true });
  const own = await second.hold(ACCOUNT, 400, { limits: ['tokens'] });
  expect(await first.settle(own, 5)).toMatchObject({ settled: true });
  // The second replica has the first one's key, and hands it on.
  await first.gateway.close();
  await lose();
  const third = await startHolding(store);
  expect(await third.settle(receipts[1] ?? '', 5)).toMatchObject({ settled: true });
});

it('replicas record their keys again soon after Redis has lost them, without a receipt', async () => {
  const store = patientStore();
  const replica = await startHolding(store);
  await replica.hold(ACCOUNT, 400);
  const redis = connect(sharedRedisUrl());
  const [present, record] = [`${store.keyPrefix}:1:receipts`, `${store.keyPrefix}:1:receipt-keys:record`];
  const known = await redis.get(present);
  await redis.del(present, record);
  await vi.waitFor(async () => {
    expect(await redis.get(present)).toBe(known);
    expect(await redis.zrange(record, '0', '-1')).toMatchObject([expect.stringMatching(`^${known} `)]);
  }, SOON);
  expect(await redis.pttl(record)).toBeGreaterThan(3_500_000);
});

it('what another program writes among the keys is ignored', async () => {
  const store = patientStore();
  const replica = await startHolding(store);
  const redis = connect(sharedRedisUrl());
  const record = `${store.keyPrefix}:1:receipt-keys:record`;
  const far = Date.now() + 1e12;
  const strange = ['', 'x', `${'A'.repeat(43)}`, `${'!'.repeat(43)} ${far}`, `${'A'.repeat(43)} -1`];
  for (const text of strange) {
    await redis.zadd(record, far, text);
    await redis.publish(`${store.keyPrefix}:1:receipt-keys`, text);
  }
  for (let index = 0; index < 100; index++)
    await redis.zadd(record, far, `${String(index).padStart(43, 'x')} ${far}`);
  const receipt = await replica.hold(ACCOUNT, 400);
  expect(await replica.settle(receipt, 5)).toMatchObject({ settled: true });
  const other = await startHolding(store);
  expect(await other.settle(await replica.hold(ACCOUNT, 400), 5)).toMatchObject({ settled: true });
});

it('strangers’ receipts do not make a replica ask Redis for each', async () => {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const replica = await startHolding({ kind: 'redis', url: server.url, deadlineMs: 30_000 });
  await replica.hold(ACCOUNT, 400);
  const redis = connect(server.url);
  const callCount = async () => {
    const stats = await redis.info('commandstats');
    return [...stats.matchAll(/^cmdstat_(?:evalsha|eval|ping):calls=(\d+)/gm)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    );
  };
  await statusOf(replica, 'A'.repeat(200));
  const [before, startedMs] = [await callCount(), performance.now()];
  for (let index = 0; index < 20; index++) {
    const strangers = Array.from({ length: 100 }, (_, one) => ({
      receipt: `A${one}`.padEnd(200, 'A'),
      cost: 1,
    }));
    expect((await replica.post({ settlements: strangers })).status).toBe(200);
  }
  const looks = 1 + (performance.now() - startedMs) / pace.receiptKeyRereadMs;
  // A look takes three commands, and the key one. The replica's other work needs some as well.
  expect((await callCount()) - before).toBeLessThan(20 * looks + 200);
});

it('while Redis does not answer, decisions are not held, receipts cannot be checked, and nothing waits for long', async () => {
  const replica = await startHolding({ kind: 'redis', url: 'redis://127.0.0.1:1' });
  const question = { account: ACCOUNT, cost: 5, hold: '60s' };
  expect(await replica.decide(question)).toMatchObject({ allowed: true, degraded: true, receipt: null });
  const { status, answer } = await replica.post({ receipt: 'A'.repeat(200), cost: 1 });
  expect([status, answer.code]).toEqual([503, 'ServiceUnavailable']);
  const batch = await replica.post({ settlements: [{ receipt: 'A'.repeat(200), cost: 1 }] });
  expect(batch.answer.settlements).toMatchObject([{ settled: false, reason: 'unavailable' }]);
  const metrics = await replica.gateway.metrics();
  expect(metrics).toMatch(/weir_receipts_total\{event="none"\} 1/);
  expect(metrics).toMatch(/weir_receipts_total\{event="unavailable"\} 2/);
});

it.each([
  ['serve', { status: 200, allowed: true, degraded: true }],
  ['share', { status: 200, allowed: true, degraded: true }],
  ['reject', { status: 503, allowed: false, degraded: false }],
])(
  'while Redis does not answer, a decision on requests in flight follows `%s`',
  async (onStoreFailure, outcome) => {
    const replica = await startHolding({ kind: 'redis', url: 'redis://127.0.0.1:1', onStoreFailure });
    const question = { account: ACCOUNT, cost: 5, hold: '60s' };
    for (const limits of [['in-flight'], ['tokens', 'in-flight']])
      expect(await replica.decide({ ...question, limits })).toMatchObject({ ...outcome, receipt: null });
    const unknown = await replica.decide({ ...question, limits: ['in-flight', 'no-limit'] });
    expect(unknown).toMatchObject({ status: 422, problem: { errors: [{ field: 'limits[1]' }] } });
    const unheld = await replica.decide({ account: ACCOUNT, limits: ['in-flight'] });
    expect(unheld).toMatchObject({ status: 422, problem: { errors: [{ field: 'limits[0]' }] } });
  },
);

it('a settlement that Redis does not answer is pending, and is applied when it does', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const replica = await startHolding({ kind: 'redis', url: redis.url, deadlineMs: 30_000 });
  const receipt = await replica.hold(ACCOUNT, 4_000);
  redis.signal('SIGSTOP');
  const outcome = await replica.settle(receipt, 500);
  redis.signal('SIGCONT');
  expect(outcome).toMatchObject({ settled: false, reason: 'pending', buckets: [] });
  await vi.waitFor(async () => expect(await replica.left(ACCOUNT, 'tokens')).toBe(9_500), SOON);
  await vi.waitFor(async () => {
    expect(await replica.settle(receipt, 500)).toMatchObject({ settled: false, reason: 'already' });
  }, SOON);
});

it('a Redis user that may not set a key lets requests pass without receipts, and the log says why', async () => {
  const redis = await startRedisServer({
    args: ['--user', 'default', 'on', 'nopass', '~*', '&*', '+@all', '-set'],
  });
  onTestFinished(() => redis.stop());
  const replica = await startHolding({ kind: 'redis', url: redis.url, deadlineMs: 30_000 });
  const question = { account: ACCOUNT, cost: 5, hold: '60s' };
  expect(await replica.decide(question)).toMatchObject({ allowed: true, degraded: false, receipt: null });
  expect(await replica.left(ACCOUNT, 'tokens')).toBe(9_995);
  const held = await replica.decide({ ...question, limits: ['tokens', 'in-flight'] });
  expect(held).toMatchObject({ allowed: true, degraded: false, receipt: null });
  expect(await replica.left(ACCOUNT, 'tokens')).toBe(9_990);
  const inFlight = await replica.decide({ ...question, limits: ['in-flight'] });
  expect(inFlight).toMatchObject({ allowed: true, degraded: true, receipt: null });
  const [line] = linesOf(replica.gateway, 'receipts cannot be signed: the store does not give their key');
  expect(line).toMatchObject({ level: 40 });
});
