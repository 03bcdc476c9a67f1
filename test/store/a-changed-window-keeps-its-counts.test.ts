import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges } from '../fixtures/run-charges.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const LIMIT = 20;
const MONTH_SECONDS = 31 * 86_400;

function open(): Store {
  const store = openStore({ kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5000 });
  onTestFinished(() => store.close());
  return store;
}

function chargeOf(key: string, windowSeconds: number, cost = 1): Charge {
  return { buckets: [{ key, limit: LIMIT, windowSeconds }], cost };
}

async function untilCounted(store: Store): Promise<void> {
  const charge = chargeOf(`${uniquePrefix()}:warm`, 1);
  while ((await store.charge(charge)).outcome === 'uncounted') await pause(5);
}

test('a window that all replicas raise at once loses no charge, and the key lives for the new one', async () => {
  const key = bucketKey(uniquePrefix(), 'a', 'account-read', 'a');
  const replicas = [open(), open()] as const;
  for (const replica of replicas) await untilCounted(replica);
  const [one, other] = replicas;
  await one.charge(chargeOf(key, 1));
  expect(await client.pttl(key)).toBeLessThanOrEqual(1500);
  let admitted = 0;
  for (let sent = 0; sent < LIMIT - 1; sent++) {
    const { outcome } = await (sent % 2 === 0 ? one : other).charge(chargeOf(key, 60));
    if (outcome === 'admitted') admitted += 1;
  }
  expect(admitted).toBe(LIMIT - 1);
  expect(await client.pttl(key)).toBeGreaterThan(60_000);
  expect(await client.pttl(key)).toBeLessThanOrEqual(120_000);
});

test('a bucket that is full when the window is raised stays full, though its denials spend nothing', async () => {
  const key = bucketKey(uniquePrefix(), 'a', 'account-read', 'a');
  const store = open();
  await untilCounted(store);
  await store.charge(chargeOf(key, 30, LIMIT));
  expect((await store.charge(chargeOf(key, 600))).outcome).toBe('denied');
  expect(await client.pttl(key)).toBeGreaterThan(600_000);
  expect(await store.peek(chargeOf(key, 600))).toMatchObject({ buckets: [{ remaining: 0 }] });
});

test('a window that is lowered shortens the life of a key with the next charge', async () => {
  const key = bucketKey(uniquePrefix(), 'a', 'account-read', 'a');
  const store = open();
  await untilCounted(store);
  await store.charge(chargeOf(key, 600));
  expect((await store.charge(chargeOf(key, 30))).outcome).toBe('admitted');
  expect(await client.pttl(key)).toBeLessThanOrEqual(60_000);
  expect(await store.peek(chargeOf(key, 30))).toMatchObject({ buckets: [{ remaining: LIMIT - 2 }] });
});

test.each([
  ['a charge', 1, 'admitted'],
  ['a denial', LIMIT, 'denied'],
] as const)(
  'a key that had a shorter window lives for one of more than a minute after %s, without a check of its life',
  async (_what, cost, outcome) => {
    const key = bucketKey(uniquePrefix(), 'a', 'account-month', 'a');
    const nowUs = Date.now() * 1000;
    await runCharges(client, [chargeOf(key, 61)], { nowUs: nowUs - 60_000_000, lifeMs: 31_500 });
    const [decision] = await runCharges(client, [chargeOf(key, MONTH_SECONDS, cost)], {
      nowUs,
      lifeMs: undefined,
    });
    expect(decision?.outcome).toBe(outcome);
    const leftMs = await client.pttl(key);
    expect(leftMs).toBeGreaterThan(1.25 * MONTH_SECONDS * 1000);
    expect(leftMs).toBeLessThanOrEqual(1.5 * MONTH_SECONDS * 1000);
  },
);

const use = fc.record({
  windowSeconds: fc.constantFrom(60, 61, 100, 600, 3600),
  cost: fc.integer({ min: 1, max: 8 }),
  account: fc.integer({ min: 0, max: 1 }),
});

/** What is expected of a bucket's key. */
class Expected {
  points = 0;
  /** The longest window of the last call that charged it, or of the denials since. */
  windowSeconds = 0;
  longestSeconds = 0;

  decide(asked: readonly { charge: Charge; isAdmitted: boolean }[]): void {
    const admitted = asked.filter(({ isAdmitted }) => isAdmitted);
    const windows = (some: typeof asked) =>
      some.flatMap(({ charge }) => charge.buckets.map((one) => one.windowSeconds));
    const longest = (some: typeof asked) => Math.max(0, ...windows(some));
    this.points += admitted.reduce((sum, { charge }) => sum + charge.cost, 0);
    this.windowSeconds =
      admitted.length > 0 ? longest(admitted) : Math.max(this.windowSeconds, longest(asked));
    this.longestSeconds = Math.max(this.longestSeconds, longest(asked));
  }

  async verify(key: string): Promise<void> {
    const leftMs = await client.pttl(key);
    expect(leftMs).toBeGreaterThan(this.windowSeconds * 1000);
    expect(leftMs).toBeLessThanOrEqual(2 * this.longestSeconds * 1000);
    expect(this.points).toBeLessThanOrEqual(LIMIT);
  }
}

test('however often the window changes, a key outlives its counts and goes within two windows, and no limit is exceeded', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  const calls = fc.array(fc.array(use, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(calls, async (plan) => {
      run += 1;
      const keys = [0, 1].map((account) => bucketKey(prefix, 'org', 'account-read', `${run}-${account}`));
      const expected = keys.map(() => new Expected());
      for (const call of plan) {
        const charges = call.map(({ account, windowSeconds, cost }) =>
          chargeOf(keys[account] ?? '', windowSeconds, cost),
        );
        const decisions = await runCharges(client, charges, { isCheckingLives: true });
        for (const [account, key] of keys.entries()) {
          const asked = charges.flatMap((charge, index) =>
            call[index]?.account === account
              ? [{ charge, isAdmitted: decisions[index]?.outcome === 'admitted' }]
              : [],
          );
          if (asked.length === 0) continue;
          expected[account]?.decide(asked);
          await expected[account]?.verify(key);
        }
      }
    }),
    { numRuns: generatedCases(100), endOnFailure: true },
  );
});

test('a Redis user that may not read the life of a key still gets every charge counted and kept', async () => {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const admin = new Redis(server.port);
  onTestFinished(() => admin.disconnect());
  const commands = ['eval', 'evalsha', 'get', 'getrange', 'append', 'setrange', 'psetex', 'time'];
  await admin.call('ACL', 'SETUSER', 'few', 'on', '>secret', '~*', ...commands.map((name) => `+${name}`));
  const few = new Redis({ port: server.port, username: 'few', password: 'secret', enableReadyCheck: false });
  onTestFinished(() => few.disconnect());
  await runCharges(few, [chargeOf('k', 1)], { isCheckingLives: true });
  const [decision] = await runCharges(few, [chargeOf('k', 60)], { isCheckingLives: true });
  expect(decision).toMatchObject({ outcome: 'admitted', buckets: [{ remaining: LIMIT - 2 }] });
  expect(await admin.pttl('k')).toBeGreaterThan(60_000);
});
