import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Charge, Store } from '../../src/store/store.ts';
import { startClockedRedis } from '../fixtures/redis-clock.ts';
import { Load, manyAccounts } from './load.ts';

const WINDOW_SECONDS = 1;
/** What a busy machine may add to a wait. A lock-out would last for ten seconds, or an hour. */
const PAUSE_MS = 5_000;
const charge: Charge = {
  buckets: [{ key: bucketKey('weir', 'a', 'account-read', 'a'), limit: 100, windowSeconds: WINDOW_SECONDS }],
  cost: 10,
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

/** A step back of at most a window is waited for: `waitSeconds` is how much longer the bucket may stay full. */
test.each([
  { step: 'back by 10 s', seconds: -10, waitSeconds: 0 },
  { step: 'back by 0.9 s', seconds: -0.9, waitSeconds: 0.9 },
  { step: 'back by 2 ms', seconds: -0.002, waitSeconds: 0.002 },
  { step: 'forward by 1 h', seconds: 3600, waitSeconds: 0 },
])(
  'Redis TIME steps $step: nothing below zero, no lock-out beyond a window and a small step, every key expires',
  async ({ seconds, waitSeconds }) => {
    const longestUs = (WINDOW_SECONDS + waitSeconds) * 1_000_000;
    const server = await startClockedRedis();
    const admin = new Redis(server.port);
    const store = openStore({ kind: 'redis', url: server.url, deadlineMs: 5000 });
    const load = new Load(store, manyAccounts('beside'));
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

    expect(await msUntilAdmitted(store)).toBeLessThan(longestUs * 1.1e-3 + PAUSE_MS);
    const denial = await fill(store);
    for (const state of denial.buckets) {
      expect(state?.remaining).toBeGreaterThanOrEqual(0);
      expect(state?.retryAfterUs).toBeLessThanOrEqual(longestUs);
      expect(state?.resetAfterUs).toBeLessThanOrEqual(longestUs);
    }
    load.stop();
    const key = charge.buckets[0]?.key ?? '';
    expect(await admin.pttl(key)).toBeGreaterThan(0);
    expect(await admin.pttl(key)).toBeLessThanOrEqual((2 * WINDOW_SECONDS + waitSeconds) * 1000);
    await expect.poll(() => admin.exists(key), { timeout: 60_000 }).toBe(0);
    // A bucket that was last charged before the clock went back lives longer by the step, but it expires too (-2: by now).
    for (const other of await admin.keys('*')) expect(await admin.pttl(other)).not.toBe(-1);
  },
);
