import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { clockedMemory } from '../store/clocked-memory.ts';
import { openClockedRedis } from '../store/clocked-redis.ts';
import type { ClockedStore } from '../store/conformance.ts';
import { ManyWindows } from './many-windows.ts';

/** `npm run simulate` makes two million. */
const DECISIONS = Number(process.env.SIMULATED_DECISIONS ?? generatedCases(20_000));
const PER_SCENARIO = [200, 200, 200, 2000];
/** Scenarios that are played at the same time, because a decision of Redis takes a moment. */
const AT_ONCE = 16;

/** Plays scenarios of this and the next seeds until that many decisions were made. */
async function simulate(
  open: () => ClockedStore,
  prefix: string,
  ended: (scenario: ManyWindows) => Promise<void>,
) {
  const seen = { admitted: 0, denied: 0, exact: 0 };
  let [seed, made] = [1, 0];
  const playSome = async () => {
    while (made < DECISIONS) {
      const decisions = PER_SCENARIO[seed % PER_SCENARIO.length] ?? 0;
      const scenario = new ManyWindows(open(), `${prefix}-${seed}`, seed++);
      made += decisions;
      await scenario.play(decisions);
      for (const what of ['admitted', 'denied', 'exact'] as const) seen[what] += scenario.seen[what];
      await ended(scenario);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, playSome));
  console.log(`${seen.admitted + seen.denied} decisions of ${seed - 1} scenarios`, seen);
  expect(seen.admitted).toBeGreaterThan(DECISIONS / 10);
  expect(seen.denied).toBeGreaterThan(DECISIONS / 10);
}

const TIMEOUT_MS = 120_000 + DECISIONS;

test('buckets of any windows, charged together in memory, decide as exact logs would', {
  timeout: TIMEOUT_MS,
}, async () => {
  await simulate(clockedMemory, 'm', async () => {});
});

test('buckets of any windows, charged together in Redis, decide as exact logs would, and stay small', {
  timeout: TIMEOUT_MS,
}, async () => {
  const { store, close } = await openClockedRedis({ kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5000 });
  const client = new Redis(sharedRedisUrl());
  onTestFinished(() => {
    close();
    client.disconnect();
  });
  let longest = 0;
  await simulate(
    () => store,
    uniquePrefix(),
    async ({ keys }) => {
      for (const key of keys) {
        longest = Math.max(longest, await client.strlen(key));
        await client.del(key);
      }
    },
  );
  // 601 entries and seven expired ones. The newest is in the header.
  expect(longest).toBeLessThanOrEqual(15 + (600 + 7) * 11);
});
