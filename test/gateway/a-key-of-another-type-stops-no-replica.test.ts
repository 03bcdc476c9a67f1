import { Redis } from 'ioredis';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { WRONG_TYPES, type WrongValue, wrongBytes } from '../fixtures/wrong-values.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const SOON = { timeout: 20_000, interval: 50 };
const REPORT = 'what Redis holds is ignored';

const SHARED_KEYS = [
  ...['limits', 'blocks', 'revocations', 'tries'].map((topic) => `${topic}:record`),
  ...['{top}', '{asked}', '{owners}', 'replicas', 'start'],
];

async function start(store: Readonly<Record<string, unknown>>): Promise<TestGateway> {
  const gateway = await startGateway({ store, settings: { log: { level: 'info', access: true } } });
  onTestFinished(() => gateway.close());
  return gateway;
}

const NO_SORTED_SET = [...WRONG_TYPES, ...wrongBytes(194)].filter(({ name }) => name !== 'a sorted set');

/** Writes a different one to each key. */
async function overwrite(prefix: string, values: readonly WrongValue[]): Promise<void> {
  for (const [index, key] of SHARED_KEYS.entries()) {
    await values[index % values.length]?.put(client, `${prefix}:1:${key}`);
  }
}

it('a replica starts, serves, and follows what is changed, although every key that replicas share is wrong', async () => {
  const store = { ...uniqueRedisStore(), onStoreFailure: 'share' };
  await overwrite(store.keyPrefix, NO_SORTED_SET);
  const [one, other] = [await start(store), await start(store)];
  const served = await one.send('GET', '/v3/things');
  expect([served.status, remainingOf(served)?.['account-read']]).toEqual([200, 19]);
  const change = await fetch(`${one.adminUrl}/limits/live/accounts/acct_1`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ why: 'launch', by: 'alice', 'account-read': 5000 }),
  });
  expect(change.status).toBe(200);
  const remaining = async () => remainingOf(await other.send('GET', '/v3/things'))?.['account-read'];
  await expect.poll(remaining, SOON).toBeGreaterThan(4_000);
  await expect
    .poll(
      async () =>
        ((await (await fetch(`${other.adminUrl}/fleet`)).json()) as { replicas: object[] }).replicas,
      SOON,
    )
    .toHaveLength(2);
  for (const { lines } of [one, other]) {
    const reports = lines.filter((line) => line.includes(REPORT));
    expect(reports.length).toBeLessThanOrEqual(1);
    for (const report of reports) expect(JSON.parse(report)).toMatchObject({ kind: 'key', reason: 'type' });
  }
  expect([...one.lines, ...other.lines].filter((line) => line.includes(REPORT))).not.toEqual([]);
});

it('the Account whose bucket was overwritten is reported once, and the next request is counted', async () => {
  const store = uniqueRedisStore();
  const gateway = await start(store);
  const key = bucketKey(store.keyPrefix, 'org_1', 'account-read', 'acct_1');
  await gateway.send('GET', '/v3/things');
  await client.set(key, Buffer.alloc(194, 'text '));
  const uncounted = await gateway.send('GET', '/v3/things');
  expect([uncounted.status, uncounted.headers.get('Service-RateLimit-Mode')]).toEqual([200, 'degraded']);
  const counted = await gateway.send('GET', '/v3/things');
  expect(remainingOf(counted)).toMatchObject({ 'account-read': 19, 'organization-read': 28 });
  const named = () =>
    gateway.lines.filter((line) => line.includes('"wrongvalue"')).map((line) => JSON.parse(line) as object);
  await expect.poll(named, SOON).toMatchObject([{ reason: 'wrongvalue', account: 'acct_1' }]);
  expect(await gateway.metrics()).toMatch(/^weir_degraded_total\{reason="wrongvalue"\} 1$/m);
  expect(await gateway.metrics()).toMatch(/^weir_store_breaker_state\{route="primary"\} 0$/m);
});
