import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { MemoryStore } from '../../../src/store/memory.ts';
import { defineScripts, runCharge } from '../../../src/store/redis-scripts.ts';
import type { Charge } from '../../../src/store/store.ts';
import { sharedRedisUrl, uniquePrefix } from '../../fixtures/redis-url.ts';

const client = new Redis(sharedRedisUrl());
defineScripts(client);
afterAll(() => client.disconnect());

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;

const scripts = readdirSync(new URL('../../../lua/', import.meta.url)).filter((name) =>
  name.endsWith('.lua'),
);

test.each(scripts)('%s compiles', async (name) => {
  const text = readFileSync(new URL(`../../../lua/${name}`, import.meta.url), 'utf8');
  expect(await client.script('LOAD', text)).toMatch(/^[0-9a-f]{40}$/);
});

const chargeArbitrary = fc.record({
  ids: fc.uniqueArray(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 }),
  limits: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 3, maxLength: 3 }),
  shadows: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  cost: fc.integer({ min: 1, max: 12 }),
});

const batchArbitrary = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 6_000_000 })),
  charges: fc.array(chargeArbitrary, { minLength: 1, maxLength: 6 }),
});

test('a batch in Redis decides as the reference does one by one, step for step', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(batchArbitrary, { maxLength: 60, size: 'max' }), async (batches) => {
      run += 1;
      let nowUs = START_US;
      const reference = new MemoryStore(() => nowUs);
      for (const { pauseUs, charges } of batches) {
        nowUs += pauseUs;
        const batch = charges.map(
          ({ ids, limits, shadows, cost }): Charge => ({
            buckets: ids.map((id, index) => ({
              key: `${prefix}:${run}:${id}`,
              limit: limits[index] ?? 1,
              shadow: shadows[index] ?? false,
            })),
            cost,
            windowSeconds: 5,
          }),
        );
        const expected = [];
        for (const charge of batch) expected.push(await reference.charge(charge));
        expect(await runCharge(client, batch, nowUs)).toEqual(expected);
      }
    }),
    { numRuns: 60, endOnFailure: true },
  );
});

test('a key that holds no bucket degrades its own charge, whose other bucket stays untouched, and no neighbour', async () => {
  const prefix = uniquePrefix();
  const bucket = (name: string) => ({ key: `${prefix}:${name}`, limit: 10 });
  await client.rpush(`${prefix}:list`, 'not a bucket');
  await client.set(`${prefix}:text`, 'not a bucket either');
  const charge = (...names: string[]): Charge => ({ buckets: names.map(bucket), cost: 4, windowSeconds: 5 });
  const decisions = await runCharge(client, [
    charge('a', 'list'),
    charge('a'),
    charge('b', 'text'),
    charge('a'),
  ]);
  expect(decisions).toMatchObject([
    { outcome: 'uncounted', reason: 'wrongtype' },
    { outcome: 'admitted', buckets: [{ remaining: 6 }] },
    { outcome: 'uncounted', reason: 'wrongtype' },
    { outcome: 'admitted', buckets: [{ remaining: 2 }] },
  ]);
  expect(await client.exists(`${prefix}:b`)).toBe(0);
  expect(await client.type(`${prefix}:list`)).toBe('list');
});

test('a quiet account takes under 200 bytes with its key, the busiest a bounded value, and both expire', async () => {
  const prefix = uniquePrefix();
  const charge = (id: string, limit: number): Charge => ({
    buckets: [{ key: `${prefix}:1:{acct_12345}:account-read:${id}`, limit }],
    cost: 1,
    windowSeconds: 60,
  });
  await runCharge(client, [charge('acct_12345', 500)]);
  expect(await client.memory('USAGE', `${prefix}:1:{acct_12345}:account-read:acct_12345`)).toBeLessThan(200);
  const busy = `${prefix}:1:{acct_12345}:account-read:busy`;
  for (let step = 0; step < 1000; step++) {
    await runCharge(client, [charge('busy', 1_000_000)], START_US + step * 300_000);
  }
  expect(await client.strlen(busy)).toBeLessThanOrEqual(15 + 100 * 11);
  for (const key of await client.keys(`${prefix}:*`)) {
    const lifeMs = await client.pttl(key);
    expect(lifeMs).toBeGreaterThan(60_000);
    expect(lifeMs).toBeLessThanOrEqual(120_000);
  }
});
