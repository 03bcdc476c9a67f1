/** What lua/put-back.lua writes, with the time of the test's own. */
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withScripts } from '../../../src/store/redis/scripts.ts';
import type { BucketCharge } from '../../../src/store/store.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../../fixtures/redis-url.ts';
import { runCharges, TEST_LIFE_MS } from '../../fixtures/run-charges.ts';
import { ExactLog } from '../exact-log.ts';

const client = withScripts(new Redis(sharedRedisUrl()));
const MARK = `${uniquePrefix()}:mark`;
beforeAll(() => client.set(MARK, '* this-recovery 0123abc'));
afterAll(() => client.disconnect());

function putBack(key: string, nowUs: number, text: string, mark = MARK): Promise<unknown> {
  return client.putBack([2, mark, key, 'this-recovery', `${nowUs} ${TEST_LIFE_MS}`, text]);
}

const START_US = Date.parse('2026-11-26T11:59:30Z') * 1_000;
const US_PER_SECOND = 1_000_000;
const US_PER_MINUTE = 60 * US_PER_SECOND;

/** A bucket in Redis, every point that it has admitted, and the points by the minute, as the journal has them. */
class Counted {
  readonly exact = new ExactLog();
  readonly #minutes = new Map<number, number>();
  readonly #bucket: BucketCharge;

  constructor(limit: number, windowSeconds: number) {
    this.#bucket = { key: `${uniquePrefix()}:day`, limit, windowSeconds };
  }

  async charge(atUs: number, cost: number): Promise<void> {
    const [decision] = await runCharges(client, [{ buckets: [this.#bucket], cost }], { nowUs: atUs });
    if (decision?.outcome !== 'admitted') return;
    this.exact.add(atUs, cost);
    const minute = Math.floor(atUs / US_PER_MINUTE);
    this.#minutes.set(minute, (this.#minutes.get(minute) ?? 0) + cost);
  }

  copy(): Promise<Buffer | null> {
    return client.getBuffer(this.#bucket.key);
  }

  /** Loses what was counted, or all but an earlier value. */
  async lose(earlier: Buffer | null): Promise<void> {
    if (earlier === null) await client.del(this.#bucket.key);
    else await client.set(this.#bucket.key, earlier, 'PX', TEST_LIFE_MS);
  }

  async putBack(nowUs: number): Promise<void> {
    const { key, windowSeconds } = this.#bucket;
    const startUs = nowUs - windowSeconds * US_PER_SECOND;
    // As PRESENT in src/store/journal/statements.ts: joined by 1/100 of the window, as of the end of the last of these minutes.
    const joined = new Map<number, { minute: number; points: number }>();
    for (const [minute, points] of [...this.#minutes].sort(([a], [b]) => a - b)) {
      if ((minute + 1) * US_PER_MINUTE <= startUs) continue;
      const part = Math.floor(minute / Math.max(1, Math.floor(windowSeconds / 6_000)));
      joined.set(part, { minute, points: points + (joined.get(part)?.points ?? 0) });
    }
    const times = [...joined.values()].map(({ minute, points }) => `${(minute + 1) * 60} ${points}`);
    if (times.length === 0) return;
    await putBack(key, nowUs, `${windowSeconds} ${times.join(' ')}`);
  }
}

const pause = fc.oneof(
  fc.integer({ min: 0, max: US_PER_SECOND }),
  fc.integer({ min: 0, max: 5 * US_PER_MINUTE }),
);
/** In thousandths of a window. */
const later = fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 1_000 }));
const cost = fc.integer({ min: 1, max: 6 });

test('a sliding window that was put back by the minute never admits too early', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        windowSeconds: fc.constantFrom(3_600, 7_200, 86_400, 7 * 86_400),
        limit: fc.integer({ min: 5, max: 40 }),
        before: fc.array(fc.record({ pause: fc.oneof(pause, later), cost }), { minLength: 1, maxLength: 25 }),
        /** Which of the charges the earlier value has, if there is one. */
        copied: fc.option(fc.nat({ max: 24 })),
        lostForUs: fc.integer({ min: 0, max: 2 * US_PER_MINUTE }),
        after: fc.array(fc.record({ later, cost }), { minLength: 1, maxLength: 15 }),
        isPutBackTwice: fc.boolean(),
      }),
      async ({ windowSeconds, limit, before, copied, lostForUs, after, isPutBackTwice }) => {
        const counted = new Counted(limit, windowSeconds);
        const windowUs = windowSeconds * US_PER_SECOND;
        let nowUs = START_US;
        let earlier: Buffer | null = null;
        for (const [index, charge] of before.entries()) {
          // Small pauses are parts of the window as well.
          nowUs += charge.pause <= 1_000 ? (charge.pause * windowUs) / 1_000 : charge.pause;
          await counted.charge(nowUs, charge.cost);
          if (index === copied) earlier = await counted.copy();
        }
        await counted.lose(earlier);
        nowUs += lostForUs;
        await counted.putBack(nowUs);
        if (isPutBackTwice) await counted.putBack(nowUs + 1);
        for (const charge of after) {
          nowUs += (charge.later * windowUs) / 1_000;
          await counted.charge(nowUs, charge.cost);
        }
        expect(counted.exact.worstWindow(windowUs)).toBeLessThanOrEqual(limit);
      },
    ),
    { numRuns: generatedCases(500) },
  );
});

const NOW_SECONDS = START_US / US_PER_SECOND;

test.each([
  ['a window', `86400 ${NOW_SECONDS - 90} 7`],
  ['a window, and its minute is not over', `86400 ${NOW_SECONDS + 30} 7`],
  ['a window, and its points no longer count', `3600 ${NOW_SECONDS - 3_600} 7`],
  ['a window with more points than a bucket has', `86400 ${NOW_SECONDS - 90} 5000000000`],
  ['a window without points', `86400 ${NOW_SECONDS - 90} 0`],
  ['a window from which more was given back than charged', `86400 ${NOW_SECONDS - 90} -7`],
  ['a period', `${NOW_SECONDS - 5_000} ${NOW_SECONDS + 5_000} ${NOW_SECONDS - 90} 9000000000000`],
  ['a period, and its minute is not over', `${NOW_SECONDS - 5} ${NOW_SECONDS + 5} ${NOW_SECONDS + 30} 7`],
  ['a period that has ended', `${NOW_SECONDS - 5_000} ${NOW_SECONDS} ${NOW_SECONDS - 90} 7`],
])('a key that does not exist gets the same value as one that cannot be read: %s', async (_, text) => {
  const fresh = `${uniquePrefix()}:new`;
  const reply = await putBack(fresh, START_US, text);
  const written = await client.getBuffer(fresh);
  // Too short, also by whole entries, and a part of an entry too long.
  for (const value of ['x', 'x'.repeat(4), 'x'.repeat(20)]) {
    const key = `${uniquePrefix()}:wrong`;
    await client.set(key, value, 'PX', TEST_LIFE_MS);
    expect(await putBack(key, START_US, text)).toEqual(reply);
    expect(await client.getBuffer(key)).toEqual(written ?? Buffer.from(value));
  }
  const key = `${uniquePrefix()}:wrong`;
  await client.lpush(key, 'another type');
  expect(await putBack(key, START_US, text)).toEqual(reply);
  expect(await client.type(key)).toBe(written === null ? 'list' : 'string');
});

test.each([
  ['Redis has lost its mark', undefined],
  ['another recovery has taken the mark', '* another-recovery 0123abc'],
  ['the counts are complete', '0123abc'],
])('what a recovery has read is not put back any more: %s', async (_, value) => {
  const [mark, key] = [`${uniquePrefix()}:mark`, `${uniquePrefix()}:day`];
  if (value !== undefined) await client.set(mark, value);
  await expect(putBack(key, START_US, `86400 ${NOW_SECONDS - 90} 7`, mark)).rejects.toThrow(
    'ENDED Redis has lost the mark',
  );
  expect(await client.exists(key)).toBe(0);
});
