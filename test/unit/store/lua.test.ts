import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { Charge } from '../../../src/store/store.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../../fixtures/redis-url.ts';
import { runCharges } from '../../fixtures/run-charges.ts';

const client = new Redis(sharedRedisUrl());
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

const textOf = (file: string) => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

/** The names of the commands that scripts call, sorted. */
const commandsOf = (names: readonly string[]) => {
  const calls = names.flatMap((name) => [...textOf(`lua/${name}`).matchAll(/\bp?call\('([A-Z]+)'/g)]);
  return [...new Set(calls.map(([, command = '']) => command))].sort();
};

test('lua/README.md lists the commands that a Redis user needs for charges, settlements and renewals', () => {
  const readme = textOf('lua/README.md');
  const start = readme.indexOf('A Redis user that may run single commands only');
  const paragraph = readme.slice(start, readme.indexOf('\n\n', start));
  const listed = [...paragraph.matchAll(/`([A-Z]+)`/g)].map(([, command = '']) => command);
  expect([...new Set(listed)].sort()).toEqual(commandsOf(['charge.lua', 'settle.lua', 'renew.lua']));
});

test('docs/operating/redis.md gives the Redis user each command of the scripts', () => {
  const [, rights = ''] = /^ACL SETUSER ([^`]+)```$/m.exec(textOf('docs/operating/redis.md')) ?? [];
  const given = new Set(rights.trim().split(/\s+/));
  const missing = commandsOf(scripts).filter((command) => !given.has(`+${command.toLowerCase()}`));
  expect(missing).toEqual([]);
});

/** By the bucket's id. */
const WINDOWS_SECONDS = [1, 5, 60, 2_678_400];

const chargeArbitrary = fc.record({
  ids: fc.uniqueArray(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 }),
  limits: fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 500, max: 3000 })), {
    minLength: 3,
    maxLength: 3,
  }),
  shadows: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  cost: fc.integer({ min: 1, max: 12 }),
});

const batchArbitrary = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 6_000_000 })),
  charges: fc.array(chargeArbitrary, { minLength: 1, maxLength: 6 }),
});

test('a batch in Redis makes the same decisions as the reference one by one', async () => {
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
              windowSeconds: WINDOWS_SECONDS[id] ?? 1,
              counts: id === 1 ? 'requests' : 'points',
              shadow: shadows[index] ?? false,
            })),
            cost,
          }),
        );
        const expected = [];
        for (const charge of batch) expected.push(await reference.charge(charge));
        expect(await runCharges(client, batch, { nowUs })).toEqual(expected);
      }
    }),
    { numRuns: generatedCases(60), endOnFailure: true },
  );
});

const steppedCharge = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 6_000_000 })),
  backUs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 5_000_000 }),
    fc.integer({ min: 0, max: 20_000_000 }),
  ),
  cost: fc.integer({ min: 1, max: 12 }),
});

test('a bucket in Redis handles a clock that is set back like the reference', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(steppedCharge, { maxLength: 100, size: 'max' }), async (steps) => {
      let nowUs = START_US;
      const reference = new MemoryStore(() => nowUs);
      // Nothing is denied: a denial writes nothing to Redis, not even the time at which it was decided.
      const buckets = [{ key: `${prefix}:${run++}`, limit: 1500, windowSeconds: 5 }];
      for (const { pauseUs, backUs, cost } of steps) {
        nowUs += pauseUs - backUs;
        const charge = { buckets, cost };
        expect(await runCharges(client, [charge], { nowUs })).toEqual([reference.charge(charge)]);
      }
    }),
    { numRuns: generatedCases(60), endOnFailure: true },
  );
});

test('a key that is not a bucket degrades only its own charge, whose other bucket is not changed', async () => {
  const prefix = uniquePrefix();
  const bucket = (name: string) => ({ key: `${prefix}:${name}`, limit: 10, windowSeconds: 5 });
  await client.rpush(`${prefix}:list`, 'not a bucket');
  await client.set(`${prefix}:text`, 'not a bucket either');
  const charge = (...names: string[]): Charge => ({ buckets: names.map(bucket), cost: 4 });
  const decisions = await runCharges(client, [
    charge('a', 'list'),
    charge('a'),
    charge('b', 'text'),
    charge('a'),
  ]);
  expect(decisions).toMatchObject([
    { outcome: 'uncounted', reason: 'wrongtype' },
    { outcome: 'admitted', buckets: [{ remaining: 6 }] },
    { outcome: 'uncounted', reason: 'wrongvalue' },
    { outcome: 'admitted', buckets: [{ remaining: 2 }] },
  ]);
  expect(await client.exists(`${prefix}:b`)).toBe(0);
});

test('a peek decides as the charge after it, and leaves no trace', async () => {
  const key = `${uniquePrefix()}:1:{a}:account-read:a`;
  const charge: Charge = { buckets: [{ key, limit: 10, windowSeconds: 5 }], cost: 4 };
  const look = (nowUs: number) => runCharges(client, [charge], { isSpending: false, nowUs });
  expect(await look(START_US)).toMatchObject([{ outcome: 'admitted', buckets: [{ remaining: 10 }] }]);
  expect(await client.exists(key)).toBe(0);
  for (let turn = 0; turn < 2; turn++) await runCharges(client, [charge], { nowUs: START_US + turn });
  const value = await client.getBuffer(key);
  // Even where a charge writes although it is denied: the clock has gone back by more than a window.
  for (const nowUs of [START_US + 2, START_US - 6 * US_PER_SECOND]) {
    const foreseen = await look(nowUs);
    expect(foreseen).toMatchObject([{ outcome: 'denied', buckets: [{ remaining: 2 }] }]);
    expect(await client.getBuffer(key)).toEqual(value);
    expect(await runCharges(client, [charge], { nowUs })).toEqual(foreseen);
  }
});

test('an idle Account takes less than 200 bytes with its key, the busiest a bounded value, and both expire', async () => {
  const prefix = uniquePrefix();
  const charge = (id: string, limit: number): Charge => ({
    buckets: [{ key: `${prefix}:1:{acct_12345}:account-read:${id}`, limit, windowSeconds: 60 }],
    cost: 1,
  });
  await runCharges(client, [charge('acct_12345', 500)]);
  expect(await client.memory('USAGE', `${prefix}:1:{acct_12345}:account-read:acct_12345`)).toBeLessThan(200);
  const busy = `${prefix}:1:{acct_12345}:account-read:busy`;
  let longest = 0;
  for (let step = 0; step < 3000; step++) {
    // Two charges that may not join each other, at a pace that fills the bucket once a window.
    const cost = step % 2 === 0 ? 1 : 3;
    await runCharges(client, [{ ...charge('busy', 999), cost }], {
      nowUs: START_US + step * 120_000,
      lifeMs: undefined,
    });
    longest = Math.max(longest, await client.strlen(busy));
  }
  expect(longest).toBeGreaterThan(4000);
  expect(longest).toBeLessThanOrEqual(15 + (601 + 7) * 11);
  for (const key of await client.keys(`${prefix}:*`)) {
    const lifeMs = await client.pttl(key);
    expect(lifeMs).toBeGreaterThan(60_000);
    expect(lifeMs).toBeLessThanOrEqual(120_000);
  }
});

test('a limit that is raised again and again within a window leaves no more entries, and decides as the reference', async () => {
  const key = `${uniquePrefix()}:1:{a}:account-month:a`;
  let nowUs = START_US;
  const reference = new MemoryStore(() => nowUs);
  let [limit, longest] = [500, 0];
  for (let step = 0; step < 3000; step++) {
    nowUs += 500_000_000;
    const cost = 1 + (step % 2) * Math.floor(limit / 250);
    const charge = { buckets: [{ key, limit, windowSeconds: 2_678_400 }], cost };
    const expected = reference.charge(charge);
    expect(await runCharges(client, [charge], { nowUs })).toEqual([expected]);
    longest = Math.max(longest, await client.strlen(key));
    if (expected.outcome === 'denied') limit *= 2;
  }
  expect(limit).toBeGreaterThan(4000);
  expect(longest).toBeGreaterThan(15 + 590 * 11);
  expect(longest).toBeLessThanOrEqual(15 + (600 + 7) * 11);
});

test('a key expires a window after its last charge, in any sequence of charges', async () => {
  const key = `${uniquePrefix()}:1:{a}:account-read:a`;
  const script = readFileSync(new URL('../../../lua/charge.lua', import.meta.url), 'utf8');
  const keysAndTexts = [key, '1', '1500 1 100000'];
  const fromUs = await clockUs();
  let leastMs = Number.POSITIVE_INFINITY;
  while ((await clockUs()) < fromUs + 1.3 * US_PER_SECOND) {
    const results = await client
      .multi()
      .eval(script, 1, ...keysAndTexts)
      .pttl(key)
      .exec();
    leastMs = Math.min(leastMs, Number(results?.[1]?.[1]));
  }
  expect(leastMs).toBeGreaterThanOrEqual(1000);
});

async function clockUs(): Promise<number> {
  const [seconds, microseconds] = await client.time();
  return Number(seconds) * US_PER_SECOND + Number(microseconds);
}

test("the example of lua/README.md has the script's own bytes", async () => {
  const readme = readFileSync(new URL('../../../lua/README.md', import.meta.url), 'utf8');
  const linesOf = (name: string) =>
    [...readme.matchAll(new RegExp(`^ {7}${name} +([0-9a-f ]+)$`, 'gm'))].map(([, hex = '']) =>
      hex.replaceAll(' ', ''),
    );
  const script = readFileSync(new URL('../../../lua/charge.lua', import.meta.url), 'utf8');
  const key = uniquePrefix();
  const seen: string[][] = [];
  for (const [afterUs, cost] of [
    [0, 3],
    [1_000_000, 2],
    [4_000_000, 96],
  ] as const) {
    const texts = [`${START_US + afterUs} 1 0 0`, `15000 ${cost} 100`];
    const reply = await client.callBuffer('EVAL', script, 1, key, ...texts);
    const value = await client.getBuffer(key);
    seen.push([value, reply].map((bytes) => (bytes as Buffer).toString('hex')));
  }
  const replies = linesOf('reply');
  expect(seen).toEqual(linesOf('value').map((value, index) => [value, replies[index]]));
  expect(seen).toHaveLength(3);
});
