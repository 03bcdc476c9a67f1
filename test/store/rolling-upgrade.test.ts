import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import type { Charge } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges, TEST_LIFE_MS } from '../fixtures/run-charges.ts';
import { anyBursts, arrivalsOf, WINDOW_US } from './bursts.ts';
import { ExactLog } from './exact-log.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const earlier = readFileSync(new URL('earlier/charge.lua', import.meta.url), 'utf8');
/** The script of 0.2.0, which had one window for all buckets of a charge. */
const oneWindow = readFileSync(new URL('earlier/one-window.lua', import.meta.url), 'utf8');

/** The calls of the two scripts differ; what they keep in Redis must not. */
async function isAdmitted(
  release: 'now' | 'earlier',
  key: string,
  atUs: number,
  cost: number,
  limit: number,
): Promise<boolean> {
  const common = [WINDOW_US, TEST_LIFE_MS, cost, 1, limit];
  if (release === 'earlier') {
    const reply = (await client.eval(earlier, 1, key, atUs, ...common)) as number[];
    expect(reply).toHaveLength(4);
    return reply[0] === 1;
  }
  const charge = { buckets: [{ key, limit, windowSeconds: WINDOW_US / 1_000_000 }], cost };
  const [decision] = await runCharges(client, [charge], { nowUs: atUs });
  return decision?.outcome === 'admitted';
}

/**
 * `earlier/charge.lua` is the script of the first releases, which joined every charge of a slot to one entry and wrote
 * each key whole. Both read what the other writes.
 */
test('replicas of two releases that share a bucket never admit more than its limit in a window', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      anyBursts,
      fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }),
      async (bursts, turns) => {
        const key = bucketKey(prefix, 'a', 'account-read', `${run++}`);
        const log = new ExactLog();
        for (const [index, { atUs, cost }] of arrivalsOf(bursts).slice(0, 800).entries()) {
          const release = turns[index % turns.length] ? 'now' : 'earlier';
          const held = log.pointsBetween(atUs - WINDOW_US - WINDOW_US / 100, atUs);
          const admitted = await isAdmitted(release, key, atUs, cost, bursts.limit);
          if (held + cost <= bursts.limit) expect(admitted).toBe(true);
          if (admitted) log.add(atUs, cost);
        }
        expect(log.worstWindow(WINDOW_US)).toBeLessThanOrEqual(bursts.limit);
      },
    ),
    { numRuns: generatedCases(25), endOnFailure: true },
  );
});

const current = readFileSync(new URL('../../lua/charge.lua', import.meta.url), 'utf8');

const WINDOWS_SECONDS = [1, 60, 86_400] as const;

const step = fc.record({
  /** In windows. */
  pause: fc.oneof(
    fc.constantFrom(0, 0.001, 1),
    fc.double({ min: 0, max: 0.02, noNaN: true }),
    fc.double({ min: -0.1, max: 1.2, noNaN: true }),
  ),
  cost: fc.integer({ min: 1, max: 10 }),
  limits: fc.tuple(fc.constantFrom(20, 60), fc.constantFrom(40, 1000)),
  isShadow: fc.boolean(),
  isEarlier: fc.boolean(),
});

/** As long as a window asks for, so that no denial writes a key to renew its life, which 0.2.0 does not do. */
function lifeOf(windowSeconds: number): number {
  return Math.max(TEST_LIFE_MS, 1500 * windowSeconds);
}

/** What a charge returns and leaves in Redis, by the script of 0.2.0. */
async function chargeByOneWindow({ buckets, cost }: Charge, atUs: number): Promise<Buffer> {
  const windowSeconds = buckets[0]?.windowSeconds ?? 0;
  const limits = buckets.map(({ limit, shadow }) => (shadow ? -limit : limit));
  const keys = buckets.map(({ key }) => key);
  const common = [windowSeconds * 1_000_000, lifeOf(windowSeconds), cost];
  const args = [atUs, 1, ...common, buckets.length, ...limits];
  return (await client.callBuffer('EVAL', oneWindow, keys.length, ...keys, ...args)) as Buffer;
}

/** Without the time of the call, which the reply of 0.2.0 does not have. */
async function chargeByThis({ buckets, cost }: Charge, atUs: number): Promise<Buffer> {
  const keys = buckets.map(({ key }) => key);
  const call = `${atUs} 1 ${lifeOf(buckets[0]?.windowSeconds ?? 0)} 0`;
  const decision = buckets
    .map(({ windowSeconds, limit, shadow }) => `${1500 * windowSeconds} ${cost} ${shadow ? -limit : limit}`)
    .join(' ');
  const reply = await client.callBuffer('EVAL', current, keys.length, ...keys, call, decision);
  return (reply as Buffer).subarray(0, -7);
}

test('replicas of 0.2.0 and of this version share buckets: whichever decides, each decision is the same', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  const steps = fc.array(step, { minLength: 1, maxLength: 150, size: 'max' });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...WINDOWS_SECONDS), steps, async (windowSeconds, plan) => {
      run += 1;
      let atUs = 1_790_000_000_000_000;
      const bucketsOf = (owner: string, { limits, isShadow }: (typeof plan)[number]) => [
        { key: bucketKey(prefix, owner, 'account-read', `${run}`), limit: limits[0], windowSeconds },
        {
          key: bucketKey(prefix, owner, 'organization-read', `${run}`),
          limit: limits[1],
          windowSeconds,
          shadow: isShadow,
        },
      ];
      for (const one of plan) {
        atUs += Math.floor(one.pause * windowSeconds * 1_000_000);
        const [shared, alone] = [bucketsOf('shared', one), bucketsOf('alone', one)];
        const decide = one.isEarlier ? chargeByOneWindow : chargeByThis;
        const decided = await decide({ buckets: shared, cost: one.cost }, atUs);
        expect(decided).toEqual(await chargeByThis({ buckets: alone, cost: one.cost }, atUs));
      }
    }),
    { numRuns: generatedCases(60), endOnFailure: true },
  );
});
