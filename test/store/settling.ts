/** What every store guarantees about settlements of charges whose cost is known later. */
import { expect, test } from 'vitest';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { bucketKey } from '../../src/store/keys.ts';
import type { BucketCharge, Charge, Settlement } from '../../src/store/store.ts';
import type { ClockedStore } from './conformance.ts';

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;
let ids = 0;

/** A store, and a bucket of 100 points in 10 seconds. */
export function testsOfSettling(open: () => Promise<{ store: ClockedStore; prefix: string }>): void {
  const opened = async (changes: Partial<BucketCharge> = {}) => {
    const { store, prefix } = await open();
    const bucket: BucketCharge = {
      key: bucketKey(prefix, 'org', 'tokens', `${ids++}`),
      limit: 100,
      windowSeconds: 10,
      ...changes,
    };
    const at = (afterS: number) => START_US + Math.round(afterS * US_PER_SECOND);
    const charge = async (cost: number, afterS: number, buckets: readonly BucketCharge[] = [bucket]) => {
      const charged: Charge = { buckets, cost };
      const decision = await store.charge(charged, at(afterS));
      if (decision.outcome !== 'admitted') throw new Error(decision.outcome);
      return { charge: charged, chargedAtUs: decision.chargedAtUs, refundsRequests: false };
    };
    const settle = (made: Omit<Settlement, 'cost' | 'id'>, cost: number, afterS: number, id = `s-${ids++}`) =>
      store.settle({ ...made, cost, id }, at(afterS));
    const left = async (afterS: number, some: readonly BucketCharge[] = [bucket]) => {
      const decision = await store.peek({ buckets: some, cost: 1 }, at(afterS));
      if (decision.outcome === 'uncounted') throw new Error(decision.reason);
      return decision.buckets.map((state) => state?.remaining);
    };
    return { store, bucket, charge, settle, left, at };
  };

  test('what a charge did not cost is given back as of its time', async () => {
    const { charge, settle, left } = await opened();
    const early = await charge(60, 0);
    await charge(40, 5);
    const settled = await settle(early, 20, 6);
    expect(settled).toEqual({
      outcome: 'settled',
      buckets: [{ remaining: 40, resetAfterUs: 9 * US_PER_SECOND, overPoints: 0 }],
    });
    expect(await left(9.999)).toEqual([40]);
    expect(await left(10)).toEqual([60]);
  });

  test('a charge that cost nothing leaves no trace', async () => {
    const { charge, settle, left } = await opened();
    const [first, second, third] = [await charge(10, 0), await charge(20, 1), await charge(30, 2)];
    await settle(second, 0, 3);
    expect(await left(3)).toEqual([60]);
    await settle(third, 0, 3);
    expect(await left(3)).toEqual([90]);
    await settle(first, 0, 3);
    expect(await left(3)).toEqual([100]);
    await charge(100, 3);
    expect(await left(3)).toEqual([0]);
  });

  test('a charge that shares an entry gives back its own points, and no others', async () => {
    const { charge, settle, left } = await opened({ limit: 10_000 });
    const first = await charge(10, 0);
    const second = await charge(20, 0.02);
    await charge(500, 1);
    await settle(first, 4, 2);
    expect(await left(2)).toEqual([10_000 - 524]);
    await settle(second, 0, 2);
    expect(await left(2)).toEqual([10_000 - 504]);
  });

  test('what a charge cost more is added as of now, above the limit if it must be, and then the bucket refuses', async () => {
    const { store, bucket, charge, settle, at } = await opened();
    const made = await charge(80, 0);
    expect(await settle(made, 130, 4)).toEqual({
      outcome: 'settled',
      buckets: [{ remaining: 0, resetAfterUs: 10 * US_PER_SECOND, overPoints: 30 }],
    });
    const again = { buckets: [bucket], cost: 1 };
    expect(await store.charge(again, at(9.999))).toMatchObject({
      outcome: 'denied',
      buckets: [{ remaining: 0 }],
    });
    expect(await store.charge(again, at(10))).toMatchObject({
      outcome: 'admitted',
      buckets: [{ remaining: 49 }],
    });
  });

  test.each([
    ['later than', 0.05],
    ['at the time of', 0.01],
  ])('points above the limit, added %s a charge, leave it its time and its refund', async (_when, atS) => {
    const { charge, settle, left } = await opened();
    const [first, other] = [await charge(40, 0), await charge(5, 0)];
    const second = await charge(50, 0.01);
    expect(await settle(first, 60, atS)).toMatchObject({ buckets: [{ remaining: 0, overPoints: 15 }] });
    expect(await settle(other, 8, 0.06)).toMatchObject({ buckets: [{ remaining: 0, overPoints: 3 }] });
    expect(await settle(second, 1, 1)).toMatchObject({ buckets: [{ remaining: 31 }] });
    expect(await left(10)).toEqual([76]);
    expect(await left(10.01)).toEqual([77]);
    // What was added in one 1/100 of the window expires together.
    expect(await left(10.059)).toEqual([77]);
    expect(await left(10.06)).toEqual([100]);
  });

  test('a settlement is applied once, however often it is sent', async () => {
    const { charge, settle, left } = await opened();
    const [less, more] = [await charge(50, 0), await charge(10, 1)];
    const outcomes: string[] = [];
    for (let sent = 0; sent < 3; sent++) {
      outcomes.push((await settle(less, 30, 2, 'less')).outcome, (await settle(more, 15, 2, 'more')).outcome);
    }
    expect(outcomes).toEqual(['settled', 'settled', 'already', 'already', 'already', 'already']);
    expect(await left(2)).toEqual([55]);
  });

  test('points that no longer count are not given back', async () => {
    const { charge, settle, left } = await opened();
    const old = await charge(50, 0);
    await charge(60, 10);
    await settle(old, 0, 11);
    expect(await left(11)).toEqual([40]);
  });

  test('a refund of a charge that has expired takes nothing from its neighbour, which still counts', async () => {
    const { store, bucket, charge, settle, at } = await opened({ limit: 10_000 });
    const old = await charge(30, 0);
    await charge(30, 0.05);
    await charge(9_970, 10.02);
    expect(await settle(old, 0, 10.03)).toMatchObject({ buckets: [{ remaining: 0 }] });
    expect((await store.charge({ buckets: [bucket], cost: 1 }, at(10.04))).outcome).toBe('denied');
  });

  test('points do not count from the moment on at which they expire, neither in an answer nor for what is given back', async () => {
    const { charge, settle } = await opened();
    const [old, later] = [await charge(50, 0), await charge(10, 1)];
    expect(await settle(later, 5, 10)).toMatchObject({ buckets: [{ remaining: 95 }] });
    expect(await settle(old, 0, 10)).toMatchObject({ buckets: [{ remaining: 95 }] });
    const alone = await opened();
    const made = await alone.charge(60, 0);
    for (const afterS of [10, 11])
      expect(await alone.settle(made, 20, afterS)).toMatchObject({
        buckets: [{ remaining: 100, resetAfterUs: 0 }],
      });
  });

  test('points that the clock of the bucket has passed are not given back after it was set back', async () => {
    const { charge, settle, left } = await opened();
    const old = await charge(30, 1.5);
    await charge(50, 12);
    await settle(old, 0, 11);
    expect(await left(12)).toEqual([50]);
  });

  test('a bucket whose points are lost gets what a charge cost more, and counts on', async () => {
    const { charge, settle, left } = await opened();
    const { bucket } = await opened();
    const made = { ...(await charge(3, 0)), charge: { buckets: [bucket], cost: 3 } };
    expect(await settle(made, 10, 1)).toMatchObject({ buckets: [{ remaining: 93, overPoints: 0 }] });
    const again = await charge(5, 2, [bucket]);
    expect(await left(2, [bucket])).toEqual([88]);
    await settle(again, 1, 3);
    expect(await left(3, [bucket])).toEqual([92]);
  });

  test('no more than 4,000,000,000 points count, and what does not fit keeps no point for longer', async () => {
    const { charge, settle, left } = await opened();
    const made = await charge(1, 0);
    for (const afterS of [1, 2]) await settle(made, 2_000_000_000, afterS);
    expect(await settle(made, 2_000_000_000, 3)).toMatchObject({ buckets: [{ overPoints: 1 }] });
    expect(await settle(made, 2_000_000_000, 8)).toMatchObject({ buckets: [{ overPoints: 0 }] });
    expect(await left(11.999)).toEqual([0]);
    expect(await left(12.999)).toEqual([99]);
    expect(await left(13)).toEqual([100]);
    await charge(1, 13);
    expect(await left(13)).toEqual([99]);
  });

  test('points of charges that are not there, or smaller than the charge, are not given back', async () => {
    const { charge, settle, left } = await opened();
    await charge(5, 0);
    const lost = { ...(await charge(3, 1)), charge: { buckets: [(await opened()).bucket], cost: 3 } };
    expect(await settle(lost, 0, 1)).toMatchObject({ outcome: 'settled', buckets: [{ remaining: 100 }] });
    const made = await charge(4, 2);
    await settle({ ...made, charge: { ...made.charge, cost: 9 } }, 1, 2);
    await settle({ ...made, chargedAtUs: made.chargedAtUs - 50_000 }, 0, 2);
    await settle({ ...made, chargedAtUs: made.chargedAtUs + 1 }, 0, 2);
    expect(await left(2)).toEqual([88]);
    const large = await opened({ limit: 10_000 });
    const joined = await large.charge(4, 1);
    await large.settle({ ...joined, chargedAtUs: joined.chargedAtUs - 150_000 }, 0, 2);
    expect(await large.left(2)).toEqual([9_996]);
    // It is too large to have been joined, so it is another one.
    const alone = await large.charge(50, 3.05);
    await large.settle({ ...alone, chargedAtUs: alone.chargedAtUs - 10_000 }, 0, 4);
    expect(await large.left(4)).toEqual([9_946]);
  });

  test('all buckets of a charge are settled, whatever their windows, shadow limits too; counts of requests only by a refund', async () => {
    const { charge, settle, left, bucket } = await opened();
    const other = (name: string, changes: Partial<BucketCharge>) => ({
      ...bucket,
      key: bucket.key + name,
      ...changes,
    });
    const buckets = [
      bucket,
      other('day', { windowSeconds: 86_400, limit: 1_000 }),
      other('shadow', { shadow: true }),
      other('requests', { counts: 'requests', limit: 5 }),
    ];
    const [first, second] = [await charge(30, 0, buckets), await charge(30, 1, buckets)];
    await settle(first, 10, 2);
    expect(await left(2, buckets)).toEqual([60, 960, 60, 3]);
    await settle({ ...second, refundsRequests: true }, 0, 2);
    expect(await left(2, buckets)).toEqual([90, 990, 90, 4]);
  });

  test('a refund whose charge is unknown takes the points that would have expired first', async () => {
    const { charge, settle, left } = await opened();
    const made = await charge(10, 0);
    await charge(20, 5);
    await settle({ ...made, charge: { ...made.charge, cost: 15 }, chargedAtUs: undefined }, 0, 6);
    expect(await left(6)).toEqual([85]);
    expect(await left(14.999)).toEqual([85]);
    await settle({ ...made, charge: { ...made.charge, cost: 99 }, chargedAtUs: undefined }, 0, 6);
    expect(await left(6)).toEqual([100]);
    for (const [cost, afterS] of [
      [1, 7],
      [20, 8],
      [30, 9],
    ] as const)
      await charge(cost, afterS);
    for (const [cost, remaining] of [
      [1, 50],
      [5, 55],
      [15, 70],
    ] as const) {
      await settle({ ...made, charge: { ...made.charge, cost }, chargedAtUs: undefined }, 0, 9);
      expect(await left(9)).toEqual([remaining]);
    }
    expect(await left(18.999)).toEqual([70]);
    expect(await left(19)).toEqual([100]);
  });

  test('a refund whose charge is unknown takes points of the present period, and no more than it has', async () => {
    const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
    const { charge, settle, left, at } = await opened({ calendar });
    const endS = (calendar.at(at(0) / 1_000).endMs * 1_000 - at(0)) / US_PER_SECOND;
    const made = await charge(60, 0);
    const refund = (cost: number, afterS: number) =>
      settle({ ...made, charge: { ...made.charge, cost }, chargedAtUs: undefined }, 0, afterS);
    await refund(20, 1);
    expect(await left(1)).toEqual([60]);
    await refund(50, 2);
    expect(await left(2)).toEqual([100]);
    await charge(30, endS);
    await refund(10, endS + 1);
    expect(await left(endS + 1)).toEqual([80]);
  });

  test('a bucket of a period is settled once, to the last point, and in the period that has its end', async () => {
    const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
    const { charge, settle, left, at } = await opened({ calendar });
    const endS = (calendar.at(at(0) / 1_000).endMs * 1_000 - at(0)) / US_PER_SECOND;
    const made = await charge(1, 0);
    const once = `once-${ids++}`;
    for (let sent = 0; sent < 3; sent++) await settle(made, 0, 1, once);
    expect(await left(1)).toEqual([100]);
    const second = await charge(10, 2);
    expect(await left(2)).toEqual([90]);
    const id = `more-${ids++}`;
    for (let sent = 0; sent < 3; sent++) await settle(second, 30, endS - 0.5, id);
    expect(await left(endS - 0.4)).toEqual([70]);
    expect(await left(endS)).toEqual([100]);
  });

  test('a settlement after its end changes nothing, and one that was in time is known as such', async () => {
    const { charge, settle, left, at } = await opened();
    const [kept, given] = [await charge(10, 0), await charge(20, 1)];
    await settle({ ...given, endsAtUs: at(5) }, 0, 5, `in-time-${ids}`);
    expect(await settle({ ...given, endsAtUs: at(5) }, 0, 6, `in-time-${ids}`)).toMatchObject({
      outcome: 'already',
    });
    expect(await settle({ ...kept, endsAtUs: at(5) }, 0, 5.1)).toMatchObject({ outcome: 'ended' });
    expect(await left(6)).toEqual([90]);
  });

  test('a settlement with a number out of range changes nothing', async () => {
    const { charge, settle, left } = await opened();
    const made = await charge(10, 0);
    for (const cost of [-1, 1.5, Number.NaN, 2_000_000_001])
      expect(await settle(made, cost, 1)).toEqual({ outcome: 'dropped', reason: 'invalid' });
    expect(await settle(made, 5, 1, 'a key:with} {another slot')).toMatchObject({ outcome: 'dropped' });
    expect(await left(1)).toEqual([90]);
  });

  test('in a period of the calendar, points are given back while it runs, and added whenever', async () => {
    const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
    const { charge, settle, left, at } = await opened({ calendar });
    const span = calendar.at(at(0) / 1_000);
    const endS = (span.endMs * 1_000 - at(0)) / US_PER_SECOND;
    const [first, second] = [await charge(60, 0), await charge(40, 1)];
    expect(await settle(first, 20, 2)).toEqual({
      outcome: 'settled',
      buckets: [{ remaining: 40, resetAfterUs: (endS - 2) * US_PER_SECOND, overPoints: 0 }],
    });
    expect(await settle(second, 100, 3)).toMatchObject({ buckets: [{ remaining: 0, overPoints: 20 }] });
    expect(await left(4)).toEqual([0]);
    const third = await charge(30, endS);
    // The hour of this charge is over.
    await settle(second, 0, endS + 1);
    expect(await left(endS + 2)).toEqual([70]);
    await settle(third, 0, endS + 3);
    expect(await left(endS + 4)).toEqual([100]);
    await settle(second, 50, endS + 5);
    expect(await left(endS + 6)).toEqual([90]);
  });

  test('a period that has begun since the last charge counts nothing of the one before', async () => {
    const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
    const { charge, settle, left, at } = await opened({ calendar });
    const endS = (calendar.at(at(0) / 1_000).endMs * 1_000 - at(0)) / US_PER_SECOND;
    const beforeS = endS - 600;
    const [first, second] = [await charge(30, beforeS), await charge(20, beforeS)];
    expect(await settle(first, 20, beforeS + 1)).toMatchObject({
      buckets: [{ remaining: 60, resetAfterUs: 599 * US_PER_SECOND }],
    });
    // Nothing is given back, and what is added counts from now on.
    expect(await settle(second, 0, endS)).toMatchObject({
      buckets: [{ remaining: 100, resetAfterUs: 3_600 * US_PER_SECOND }],
    });
    const other = await opened({ calendar });
    const late = await other.charge(30, beforeS);
    expect(await other.settle(late, 35, endS + 1)).toMatchObject({ buckets: [{ remaining: 95 }] });
    expect(await left(endS + 1)).toEqual([100]);
  });

  test('no more is given back in a period than was charged in it', async () => {
    const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
    const { charge, settle, left, at } = await opened({ calendar });
    const endS = (calendar.at(at(0) / 1_000).endMs * 1_000 - at(0)) / US_PER_SECOND;
    const old = await charge(10, endS - 1);
    const made = await charge(30, endS);
    await settle(old, 0, endS + 1);
    await settle({ ...made, charge: { ...made.charge, cost: 31 } }, 0, endS + 1);
    expect(await left(endS + 1)).toEqual([70]);
    // The clock goes back to the hour before.
    await settle(made, 45, endS - 1);
    expect(await left(endS + 2)).toEqual([55]);
  });
}
