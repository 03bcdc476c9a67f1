import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Calendar, calendarOf, type PeriodRule } from '../../src/domain/limits/calendar.ts';
import { bucketKey } from '../../src/store/keys.ts';
import { readBuckets } from '../../src/store/read-buckets.ts';
import type { BucketCharge, Decision } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import type { ClockedStore } from './conformance.ts';

const US_PER_MS = 1_000;
const HOUR_US = 3_600_000_000;
const DAY_US = 24 * HOUR_US;

const MONTH = calendarOf({ unit: 'month', timeZone: 'Europe/Berlin', startsOn: 1 });

const us = (text: string) => Date.parse(text) * US_PER_MS;

function bucketOf(key: string, calendar: Calendar, limit: number): BucketCharge {
  return { key, limit, windowSeconds: 60, calendar };
}

const rule: fc.Arbitrary<PeriodRule> = fc.record({
  unit: fc.constantFrom('hour', 'day', 'week', 'month'),
  timeZone: fc.constantFrom('UTC', 'America/Sao_Paulo', 'Australia/Lord_Howe'),
  startsOn: fc.integer({ min: 1, max: 7 }),
});

/** Pauses of minutes and days, some of which end near the end of an hour, a day or a month. */
const pause = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 1_000 }) },
  { weight: 4, arbitrary: fc.integer({ min: 0, max: HOUR_US }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 12 * DAY_US }) },
);

const step = fc.record({ pause, cost: fc.integer({ min: 1, max: 10 }), isWithWindow: fc.boolean() });

/** What every store guarantees of limits by the calendar, whatever arrives when. */
export function testsOfPeriods(
  open: () => Promise<{ store: ClockedStore; prefix: string }>,
  runs = 60,
): void {
  test('no period ever holds more than the limit, nothing fitting is denied, and a denial spends nothing', async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(rule, fc.array(step, { maxLength: 80, size: 'max' }), async (one, steps) => {
        const walk = new PeriodWalk(store, `${prefix}${run++}`, calendarOf(one));
        for (const { pause: pauseUs, cost, isWithWindow } of steps)
          await walk.take(pauseUs, cost, isWithWindow);
      }),
      { numRuns: generatedCases(runs), endOnFailure: true },
    );
  });

  test('a period frees all its points when it ends, and none before', async () => {
    const { store, prefix } = await open();
    const buckets = [bucketOf(bucketKey(prefix, 'o', 'month', 'o'), MONTH, 10)];
    const at = (text: string, cost: number) => store.charge({ buckets, cost }, us(text));
    expect(await at('2026-11-01T00:00+01:00', 4)).toMatchObject({
      outcome: 'admitted',
      buckets: [{ remaining: 6, resetAfterUs: 30 * DAY_US, retryAfterUs: 0 }],
    });
    expect((await at('2026-11-30T23:59+01:00', 6)).outcome).toBe('admitted');
    expect(await at('2026-11-30T23:59:59+01:00', 1)).toEqual({
      outcome: 'denied',
      buckets: [{ remaining: 0, resetAfterUs: 1_000_000, retryAfterUs: 1_000_000 }],
    });
    expect((await at('2026-12-01T00:00+01:00', 10)).outcome).toBe('admitted');
  });

  test('counts and limits are exact far beyond 32 bits', async () => {
    const { store, prefix } = await open();
    const limit = 9_000_000_000_000_000;
    const buckets = [bucketOf(bucketKey(prefix, 'o', 'large', 'o'), MONTH, limit)];
    const nowUs = us('2026-11-10T00:00Z');
    for (let calls = 0; calls < 5; calls++) await store.charge({ buckets, cost: 1_999_999_999 }, nowUs);
    expect(await store.charge({ buckets, cost: 1 }, nowUs)).toMatchObject({
      buckets: [{ remaining: limit - 9_999_999_996 }],
    });
    const less = buckets.map((one) => ({ ...one, limit: 9_999_999_997 }));
    expect((await store.charge({ buckets: less, cost: 2 }, nowUs)).outcome).toBe('denied');
    expect((await store.charge({ buckets: less, cost: 1 }, nowUs)).outcome).toBe('admitted');
    const [{ limit: _, ...unlimited }] = [...less] as [BucketCharge];
    const read = await readBuckets({ peek: (charge) => store.peek(charge, nowUs) }, [unlimited]);
    expect(read).toMatchObject({ buckets: [{ used: 9_999_999_997 }] });
  });

  test('a bucket of a period is charged with all others, or not at all', async () => {
    const { store, prefix } = await open();
    const nowUs = us('2026-11-10T00:00Z');
    const month = bucketOf(bucketKey(prefix, 'o', 'month', 'o'), MONTH, 10);
    const second = { key: bucketKey(prefix, 'o', 'second', 'o'), limit: 3, windowSeconds: 1 };
    const charge = (cost: number, atUs: number) => store.charge({ buckets: [month, second], cost }, atUs);
    expect((await charge(4, nowUs)).outcome).toBe('denied');
    expect(await charge(3, nowUs)).toMatchObject({ buckets: [{ remaining: 7 }, { remaining: 0 }] });
    expect((await charge(3, nowUs + 1_000_000)).outcome).toBe('admitted');
    expect((await charge(3, nowUs + 2_000_000)).outcome).toBe('admitted');
    expect(await charge(2, nowUs + 3_000_000)).toMatchObject({
      outcome: 'denied',
      buckets: [{ remaining: 1 }, { remaining: 3 }],
    });
  });

  test('a start that changes within a period loses no point and carries none that is older', async () => {
    const { store, prefix } = await open();
    const key = bucketKey(prefix, 'o', 'moved', 'o');
    const calendarFrom = (startsOn: number) => calendarOf({ unit: 'month', timeZone: 'UTC', startsOn });
    const at = (startsOn: number, text: string, cost: number) =>
      store.charge({ buckets: [bucketOf(key, calendarFrom(startsOn), 10)], cost }, us(text));
    await at(1, '2026-11-02T00:00Z', 4);
    expect(await at(1, '2026-11-16T00:00Z', 5)).toMatchObject({ buckets: [{ remaining: 1 }] });
    // Any of the 9 points may have been charged since the 15th.
    expect(await at(15, '2026-11-20T00:00Z', 2)).toMatchObject({
      outcome: 'denied',
      buckets: [{ remaining: 1 }],
    });
    expect(await at(15, '2026-12-10T00:00Z', 2)).toMatchObject({
      outcome: 'denied',
      buckets: [{ remaining: 1 }],
    });
    expect(await at(15, '2026-12-15T00:00Z', 10)).toMatchObject({ outcome: 'admitted' });
    // The last point was charged before the 20th.
    expect(await at(20, '2026-12-21T00:00Z', 10)).toMatchObject({ outcome: 'admitted' });
  });

  test("a clock that goes back over a period's end stays in the new period, and one that was far ahead locks nobody out for longer than a period", async () => {
    const { store, prefix } = await open();
    const buckets = [bucketOf(bucketKey(prefix, 'o', 'clock', 'o'), MONTH, 10)];
    const at = (text: string, cost: number) => store.charge({ buckets, cost }, us(text));
    await at('2026-11-30T22:59:50Z', 10);
    expect(await at('2026-11-30T23:00:01Z', 6)).toMatchObject({ buckets: [{ remaining: 4 }] });
    expect(await at('2026-11-30T22:59:59Z', 5)).toMatchObject({
      outcome: 'denied',
      buckets: [{ remaining: 4 }],
    });
    expect(await at('2026-11-30T22:59:59Z', 4)).toMatchObject({ outcome: 'admitted' });
    expect(await at('2026-11-30T23:00:02Z', 1)).toMatchObject({ outcome: 'denied' });
    await at('2028-05-05T00:00Z', 10);
    expect((await at('2026-12-24T00:00Z', 1)).outcome).toBe('denied');
    expect((await at('2027-01-01T00:00Z', 10)).outcome).toBe('admitted');
  });

  test('a peek at a period decides as a charge would, and spends nothing', async () => {
    const { store, prefix } = await open();
    const charge = { buckets: [bucketOf(bucketKey(prefix, 'o', 'peek', 'o'), MONTH, 10)], cost: 7 };
    const nowUs = us('2026-11-10T00:00Z');
    expect(await store.peek(charge, nowUs)).toMatchObject({
      outcome: 'admitted',
      buckets: [{ remaining: 10 }],
    });
    await store.charge(charge, nowUs);
    expect(await store.peek(charge, nowUs + 1)).toEqual(await store.charge(charge, nowUs + 1));
  });
}

/** Charges an Account by the calendar, with and without a window beside it, and compares each answer with sums by period. */
class PeriodWalk {
  readonly #store: ClockedStore;
  readonly #calendar: Calendar;
  readonly #month: BucketCharge;
  readonly #window: BucketCharge;
  readonly #sums = new Map<number, number>();
  #nowUs = us('2026-01-30T22:00Z');

  constructor(store: ClockedStore, prefix: string, calendar: Calendar) {
    this.#store = store;
    this.#calendar = calendar;
    this.#month = bucketOf(bucketKey(prefix, 'o', 'sums', 'o'), calendar, 40);
    this.#window = { key: bucketKey(prefix, 'o', 'second', 'o'), limit: 15, windowSeconds: 1 };
  }

  async take(pauseUs: number, cost: number, isWithWindow: boolean): Promise<void> {
    this.#nowUs += pauseUs;
    const span = this.#calendar.at(this.#nowUs / US_PER_MS);
    const sum = this.#sums.get(span.startMs) ?? 0;
    const { limit } = this.#month;
    const window = await this.#store.peek({ buckets: [this.#window], cost }, this.#nowUs);
    const isExpected = sum + cost <= limit && (!isWithWindow || window.outcome === 'admitted');
    const buckets = isWithWindow ? [this.#month, this.#window] : [this.#month];
    const decision: Decision = await this.#store.charge({ buckets, cost }, this.#nowUs);
    if (decision.outcome === 'uncounted') throw new Error(`uncounted: ${decision.reason}`);
    const after = isExpected ? sum + cost : sum;
    this.#sums.set(span.startMs, after);
    const leftUs = span.endMs * US_PER_MS - this.#nowUs;
    expect({ outcome: decision.outcome, month: decision.buckets[0] }).toEqual({
      outcome: isExpected ? 'admitted' : 'denied',
      month: {
        remaining: limit - after,
        resetAfterUs: leftUs,
        retryAfterUs: sum + cost <= limit ? 0 : leftUs,
      },
    });
  }
}
