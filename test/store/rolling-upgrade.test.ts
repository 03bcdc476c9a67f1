import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges, TEST_LIFE_MS } from '../fixtures/run-charges.ts';
import { anyBursts, arrivalsOf, WINDOW_US } from './bursts.ts';
import { ExactLog } from './exact-log.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const earlier = readFileSync(new URL('earlier/charge.lua', import.meta.url), 'utf8');

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
  const charge = { buckets: [{ key, limit }], cost, windowSeconds: WINDOW_US / 1_000_000 };
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
    { numRuns: 25, endOnFailure: true },
  );
});
