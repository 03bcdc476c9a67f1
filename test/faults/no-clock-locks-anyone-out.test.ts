import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { startClockedRedis } from '../fixtures/redis-clock.ts';
import { Load } from './load.ts';

const WINDOW_SECONDS = 1;
const charge: Charge = {
  buckets: [{ key: bucketKey('weir', 'a', 'account-read', 'a'), limit: 100 }],
  cost: 10,
  windowSeconds: WINDOW_SECONDS,
};

/** Fills the bucket, and resolves to the first denial. */
async function fill(store: Store) {
  for (;;) {
    const decision = await store.charge(charge);
    if (decision.outcome === 'denied') return decision;
    if (decision.outcome === 'uncounted') throw new Error(decision.reason);
  }
}

async function secondsOf(admin: Redis): Promise<number> {
  const [seconds] = await admin.time();
  return Number(seconds);
}

async function msUntilAdmitted(store: Store): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    const { outcome } = await store.charge(charge);
    if (outcome === 'admitted') return performance.now() - startMs;
    await pause(1);
  }
}

test.each([
  ['back by 10 s', -10],
  ['back by 2 ms', -0.002],
  ['forward by 1 h', 3600],
])(
  'Redis TIME steps %s: nothing below zero, no lock-out beyond a window, every key expires',
  async (_what, seconds) => {
    const server = await startClockedRedis();
    const admin = new Redis(server.port);
    const store = openStore({ kind: 'redis', url: server.url, deadlineMs: 5000 });
    const load = new Load(store, 'beside');
    onTestFinished(async () => {
      load.stop();
      admin.disconnect();
      await store.close();
      await server.stop();
    });
    await load.until(true, 0, 5);
    await fill(store);
    const before = await secondsOf(admin);
    server.shiftClock(seconds);
    const after = await secondsOf(admin);
    expect(Math.abs(after - before - seconds)).toBeLessThanOrEqual(2);

    expect(await msUntilAdmitted(store)).toBeLessThan(WINDOW_SECONDS * 1100 + 500);
    const denial = await fill(store);
    for (const { remaining, retryAfterUs, resetAfterUs } of denial.buckets) {
      expect(remaining).toBeGreaterThanOrEqual(0);
      expect(retryAfterUs).toBeLessThanOrEqual(WINDOW_SECONDS * 1_000_000);
      expect(resetAfterUs).toBeLessThanOrEqual(WINDOW_SECONDS * 1_000_000);
    }
    load.stop();
    const key = charge.buckets[0]?.key ?? '';
    expect(await admin.pttl(key)).toBeGreaterThan(0);
    expect(await admin.pttl(key)).toBeLessThanOrEqual(2 * WINDOW_SECONDS * 1000);
    await expect.poll(() => admin.exists(key), { timeout: 5000 }).toBe(0);
    // A bucket that nobody has touched since the clock went back lives longer, by that much, and is none the worse.
    for (const other of await admin.keys('*')) expect(await admin.pttl(other)).toBeGreaterThan(0);
  },
);
