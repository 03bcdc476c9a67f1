/** Limits by the calendar in Redis: what their keys hold, and whose clock decides. */
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { Generations } from '../../src/store/generations.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { PeriodCount } from '../../src/store/period-count.ts';
import type { BucketCharge, Charge } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges } from '../fixtures/run-charges.ts';
import { WRONG_TYPES, type WrongValue, wrongBytes } from '../fixtures/wrong-values.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const HOUR_US = 3_600_000_000;
const START_US = Date.parse('2026-11-30T20:00Z') * 1_000;

const monthFrom = (startsOn: number) => calendarOf({ unit: 'month', timeZone: 'UTC', startsOn });
const HOURS = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
const DAYS = calendarOf({ unit: 'day', timeZone: 'Asia/Kathmandu', startsOn: 1 });

function bucket(key: string, limit = 10, calendar = monthFrom(1)): BucketCharge {
  return { key, limit, windowSeconds: 60, calendar };
}

test('a bucket of a period takes less than 120 bytes beside its name, no more than a window, and expires soon after its period', async () => {
  const calendar = monthFrom(1);
  const sizes: number[] = [];
  const windowSizes: number[] = [];
  let key = '';
  for (let keys = 0; keys < 9; keys++) {
    // As long as a key with the usual prefix. With its name of 53 bytes, it takes 136 bytes.
    key = `${uniquePrefix().slice(-4)}:1:{org_1234567}:organization-month.p:org_1234567`;
    const window = key.replace('month.p', 'month.w');
    await runCharges(client, [{ buckets: [{ key: window, limit: 9, windowSeconds: 86_400 }], cost: 1 }]);
    windowSizes.push(Number(await client.memory('USAGE', window)));
    for (let charges = 0; charges < 3; charges++) {
      const buckets = [bucket(key, 9_000_000_000_000_000, calendar)];
      await runCharges(client, [{ buckets, cost: 1_000_000 }]);
    }
    sizes.push(Number(await client.memory('USAGE', key)));
  }
  // Redis now and then reuses a larger block.
  expect(Math.min(...sizes) - key.length).toBeLessThan(120);
  expect(Math.min(...sizes)).toBeLessThanOrEqual(Math.min(...windowSizes));
  const leftMs = calendar.at(Date.now()).endMs - Date.now();
  const lifeMs = await client.pttl(key);
  expect(lifeMs).toBeGreaterThan(leftMs);
  expect(lifeMs).toBeLessThan(leftMs + 1_000_000);
});

/** With a clock of its own, a test keeps keys in Redis for longer than their periods. */
const unexpired = () => new Generations<PeriodCount>(1_000);

const charged = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: 0, max: HOUR_US })),
  backUs: fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: HOUR_US / 2 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 50 * HOUR_US }) },
  ),
  charges: fc.array(
    fc.record({
      ids: fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 5 }),
      limit: fc.integer({ min: 5, max: 60 }),
      shadow: fc.boolean(),
      cost: fc.integer({ min: 1, max: 12 }),
      startsOn: fc.constantFrom(1, 1, 1, 30),
    }),
    { minLength: 1, maxLength: 5 },
  ),
});

test('a batch with windows and periods makes the same decisions as the reference one by one', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(charged, { maxLength: 50, size: 'max' }), async (batches) => {
      run += 1;
      let nowUs = START_US;
      const reference = new MemoryStore(() => nowUs, undefined, undefined, unexpired());
      for (const { pauseUs, charges } of batches) {
        nowUs += pauseUs;
        const batch = charges.map(({ ids, limit, shadow, cost, startsOn }): Charge => {
          const calendars = [undefined, monthFrom(startsOn), HOURS, DAYS, undefined];
          const buckets = ids.map((id): BucketCharge => {
            const calendar = calendars[id];
            const one = { key: `${prefix}:${run}:${id}`, limit: id === 3 ? 1_500 : limit, windowSeconds: 60 };
            return { ...one, shadow: shadow && id % 2 === 0, ...(calendar && { calendar }) };
          });
          return { buckets, cost };
        });
        const expected = batch.map((charge) => reference.charge(charge));
        const decisions = await runCharges(client, batch, { nowUs });
        expect(decisions).toEqual(expected);
      }
    }),
    { numRuns: generatedCases(60), endOnFailure: true },
  );
});

test('a bucket of a period handles a clock that is set back like the reference, denials included', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(charged, { maxLength: 50, size: 'max' }), async (batches) => {
      run += 1;
      let nowUs = START_US;
      const reference = new MemoryStore(() => nowUs, undefined, undefined, unexpired());
      for (const { pauseUs, backUs, charges } of batches) {
        nowUs += pauseUs - backUs;
        for (const { limit, cost, startsOn } of charges) {
          const buckets = [
            bucket(`${prefix}:${run}:month`, limit, monthFrom(startsOn)),
            bucket(`${prefix}:${run}:hour`, 30, HOURS),
          ];
          const expected = reference.charge({ buckets, cost });
          expect(await runCharges(client, [{ buckets, cost }], { nowUs })).toEqual([expected]);
        }
      }
    }),
    { numRuns: generatedCases(60), endOnFailure: true },
  );
});

test('whatever another program writes to the key of a period affects its owner once', async () => {
  const prefix = uniquePrefix();
  const values: WrongValue[] = [...WRONG_TYPES];
  for (let length = 1; length <= 64; length++) values.push(...wrongBytes(length));
  const wrong = { buckets: [bucket(`${prefix}:wrong`)], cost: 2 };
  for (const { name, reason, put } of values) {
    const other = { buckets: [bucket(`${prefix}:other ${name}`)], cost: 1 };
    await put(client, `${prefix}:wrong`);
    const both = { buckets: [...other.buckets, ...wrong.buckets], cost: 2 };
    expect([
      name,
      ...(await runCharges(client, [other, both, wrong, other], { nowUs: START_US })),
    ]).toMatchObject([
      name,
      { outcome: 'admitted', buckets: [{ remaining: 9 }] },
      { outcome: 'uncounted', reason },
      { outcome: 'admitted', buckets: [{ remaining: 8 }] },
      { outcome: 'admitted', buckets: [{ remaining: 8 }] },
    ]);
  }
});

test('a denial lets a key live for a period that has become longer', async () => {
  const key = `${uniquePrefix()}:moved`;
  const charge = (startsOn: number, cost: number) => ({
    buckets: [bucket(key, 10, monthFrom(startsOn))],
    cost,
  });
  const nowUs = Date.parse('2026-11-20T00:00Z') * 1_000;
  await runCharges(client, [charge(25, 10)], { nowUs, lifeMs: undefined });
  const fiveDays = await client.pttl(key);
  expect(await runCharges(client, [charge(15, 1)], { nowUs, lifeMs: undefined })).toMatchObject([
    { outcome: 'denied' },
  ]);
  expect(await client.pttl(key)).toBeGreaterThan(fiveDays + 19 * 86_400_000);
});

test.each([-400, -40, -1, 1, 40, 400])(
  'a replica whose clock is %i days ahead charges the period that Redis is in',
  async (days) => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * 86_400_000 });
    const reasons: string[] = [];
    const store = openStore({ kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5_000 });
    onTestFinished(async () => {
      vi.useRealTimers();
      await store.close();
    });
    const prefix = uniquePrefix();
    const charge = (calendar: typeof DAYS): Charge => ({
      buckets: [
        { key: `${prefix}:second`, limit: 1_000, windowSeconds: 60 },
        bucket(`${prefix}:${calendar.rule.unit}`, 10, calendar),
      ],
      cost: 3,
    });
    for (const calendar of [monthFrom(1), HOURS, DAYS]) {
      const decisions = [];
      while (decisions.length < 5) {
        const decision = await store.charge(charge(calendar));
        // The connection may not be ready yet.
        if (decision.outcome === 'uncounted' && decision.reason === 'disconnected') {
          await new Promise((resolve) => setImmediate(resolve));
          continue;
        }
        decisions.push(decision);
      }
      expect(decisions.map((one) => (one.outcome === 'uncounted' ? one.reason : one.outcome))).toEqual([
        'admitted',
        'admitted',
        'admitted',
        'denied',
        'denied',
      ]);
      const [seconds] = await client.time();
      const [denied] = decisions.slice(-1);
      const state = denied?.outcome === 'denied' ? denied.buckets[1] : undefined;
      const leftUs = calendar.at(Number(seconds) * 1_000).endMs * 1_000 - Number(seconds) * 1_000_000;
      expect(Math.abs((state?.retryAfterUs ?? 0) - leftUs)).toBeLessThan(60_000_000);
      expect(await store.peek(charge(calendar))).toMatchObject({ outcome: 'denied' });
    }
    expect(reasons).toEqual([]);
  },
);
