import fc from 'fast-check';
import { expect, test } from 'vitest';
import { calendarOf } from '../../../../src/domain/limits/calendar.ts';
import { PendingSums } from '../../../../src/store/journal/sums.ts';
import {
  type RecordedBucket,
  type RecordedLimit,
  type RecordedSum,
  recordedLimit,
} from '../../../../src/store/store.ts';
import { generatedCases } from '../../../fixtures/generated-cases.ts';

const record = recordedLimit({ scope: 'account', name: 'account-day', windowSeconds: 86_400 });

const bucketOf = (owner: string) => ({ key: `key of ${owner}`, record, owner });

/** The first minute of a quarter of an hour. */
const MINUTE = 29_700_000;

const quarterOf = (minute: number) => minute - (minute % 15);

const EVERYTHING = Number.POSITIVE_INFINITY;

test('a request that finds it full joins a few sums alone, and later ones join the others', () => {
  const sums = new PendingSums(10_000);
  for (let minute = 0; minute < 4; minute++)
    for (let owner = 0; owner < 2_500; owner++)
      sums.add(bucketOf(`acct_${owner}`), 'list', MINUTE + minute, 'admitted', 1);
  expect(sums.add(bucketOf('acct_new'), 'list', MINUTE + 4, 'admitted', 1)).toBe(true);
  expect(sums.size).toBeLessThan(10_200);
  expect(sums.size).toBeGreaterThan(9_000);
  for (let owner = 0; owner < 1_000; owner++)
    expect(sums.add(bucketOf(`later_${owner}`), 'list', MINUTE + 5, 'admitted', 1)).toBe(true);
  expect(sums.size).toBeLessThan(10_200);
  const all = sums.take(EVERYTHING);
  expect(all.reduce((points, one) => points + one.points, 0)).toBe(11_001);
  expect(sums.size).toBe(0);
});

test('a bucket that is charged again adds to its sum without a look-up, until the sum is taken out', () => {
  const [sums, others] = [new PendingSums(), new PendingSums()];
  const bucket: RecordedBucket = bucketOf('acct_1');
  sums.add(bucket, 'list', MINUTE, 'admitted', 1);
  const { sum } = bucket;
  sums.add(bucket, 'list', MINUTE, 'admitted', 2);
  expect(bucket.sum).toBe(sum);
  expect(sums.take(EVERYTHING)).toEqual([sum]);
  others.add(bucket, 'list', MINUTE, 'admitted', 4);
  sums.add(bucket, 'list', MINUTE, 'admitted', 8);
  expect([sums, others].map((one) => one.take(EVERYTHING).map(({ points }) => points))).toEqual([[8], [4]]);
  expect(sum?.points).toBe(3);
});

test('a bucket does not add to a sum that was joined with another', () => {
  const sums = new PendingSums(2);
  const bucket = bucketOf('acct_1');
  sums.add(bucket, 'list', MINUTE, 'admitted', 1);
  sums.add(bucketOf('acct_2'), 'list', MINUTE, 'admitted', 2);
  sums.add(bucketOf('acct_1'), 'list', MINUTE + 1, 'admitted', 4);
  sums.add(bucket, 'list', MINUTE, 'admitted', 8);
  expect(sums.take(EVERYTHING).map(({ points }) => points)).toEqual([2, 13]);
});

/** Picks the one bucket of an owner, or a new copy of the first owner's bucket, which has that owner's last sum. */
function bucketsToPick(owners: number) {
  const buckets = Array.from({ length: owners }, (_, owner) => bucketOf(`acct_${owner}`));
  return (owner: number, isCopy: boolean): RecordedBucket => {
    const copy = { ...buckets[0], ...bucketOf(`acct_${owner}`) };
    return isCopy ? copy : (buckets[owner] ?? copy);
  };
}

test('nothing is lost or counted twice, however sums are added, joined and taken, and only what has no room is dropped', () => {
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        owner: fc.integer({ min: 0, max: 60 }),
        operation: fc.constantFrom('list', 'create'),
        minute: fc.integer({ min: 0, max: 34 }),
        recorded: fc.constantFrom('admitted' as const, 'refused' as const),
        isCopy: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ take: fc.integer({ min: 1, max: 150 }) }) },
  );
  const run = fc.array(step, { minLength: 100, maxLength: 1_500 });
  fc.assert(
    fc.property(run, (steps) => {
      const sums = new PendingSums(100);
      const pick = bucketsToPick(61);
      const added = new Map<string, number>();
      const taken = new Map<string, number>();
      let [most, leastWithoutRoom] = [0, Number.POSITIVE_INFINITY];
      const note = (
        to: Map<string, number>,
        minute: number,
        key: string,
        operation: string,
        points: number,
      ) => {
        const name = `${quarterOf(minute)} ${operation} ${key}`;
        to.set(name, (to.get(name) ?? 0) + points);
      };
      const noteTaken = (all: readonly RecordedSum[]) => {
        for (const { minute, key, operation, points, requests, refused } of all) {
          expect(requests + refused).toBe(points);
          note(taken, minute, key, operation, points);
        }
      };
      for (const one of steps) {
        if ('take' in one) noteTaken(sums.take(one.take));
        else {
          const bucket = pick(one.owner, one.isCopy);
          const minute = MINUTE + one.minute;
          if (sums.add(bucket, one.operation, minute, one.recorded, 1))
            note(added, minute, bucket.key, one.operation, 1);
          // All sums are joined, so each of a hundred owners and operations has one.
          else leastWithoutRoom = Math.min(leastWithoutRoom, sums.size);
          most = Math.max(most, sums.size);
        }
      }
      expect(leastWithoutRoom).toBeGreaterThanOrEqual(100);
      expect(most).toBeLessThanOrEqual(105);
      noteTaken(sums.take(EVERYTHING));
      expect(sums.size).toBe(0);
      expect(taken).toEqual(added);
    }),
    { numRuns: generatedCases(100) },
  );
});

const hourly = { scope: 'account', windowSeconds: 3_600 } as const;
const hour = recordedLimit({
  ...hourly,
  name: 'hour',
  calendar: calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 }),
});
const slidingHour = recordedLimit({ ...hourly, name: 'sliding-hour' });

/** Adds two requests, of two operations, to each limit of each owner in each of these minutes. Returns how many had no room. */
function addAll(sums: PendingSums, owners: number, limits: readonly RecordedLimit[], minutes: number[]) {
  const buckets = Array.from({ length: owners }, (_, owner) =>
    limits.map((limit) => ({ key: `${limit.name} of ${owner}`, record: limit, owner: `acct_${owner}` })),
  ).flat();
  let dropped = 0;
  for (const minute of minutes)
    for (const bucket of buckets)
      for (const operation of ['list', 'create'])
        if (!sums.add(bucket, operation, MINUTE + minute, 'admitted', 1)) dropped += 1;
  return dropped;
}

const upTo = (minutes: number, step: number) =>
  Array.from({ length: minutes / step }, (_, index) => index * step);

/** The points of each day, hour or other number of minutes. */
function pointsBy(span: number, sums: readonly RecordedSum[]): ReadonlyMap<number, number> {
  const points = new Map<number, number>();
  for (const one of sums) {
    const part = Math.floor((one.minute - MINUTE) / span);
    points.set(part, (points.get(part) ?? 0) + one.points);
  }
  return points;
}

test('as many owners, limits and operations as have room for a sum each lose nothing in an outage of a day', () => {
  const weekly = recordedLimit({ scope: 'account', name: 'week', windowSeconds: 7 * 86_400 });
  const sums = new PendingSums(400);
  expect(addAll(sums, 99, [record, weekly], upTo(1_440, 5))).toBe(0);
  expect(sums.size).toBeLessThanOrEqual(420);
  // Another owner has room, because the others' sums are joined.
  expect(sums.add(bucketOf('acct_new'), 'list', MINUTE + 1_439, 'admitted', 1)).toBe(true);
  expect([...pointsBy(1_440, sums.take(EVERYTHING))]).toEqual([[0, (99 * 4 * 1_440) / 5 + 1]]);
});

test('what is joined by days counts in its own day and in its own period, and never too early', () => {
  const sums = new PendingSums(400);
  const minutes = 1_440 + 150;
  expect(addAll(sums, 20, [hour, slidingHour], upTo(minutes, 1))).toBe(0);
  const taken = sums.take(EVERYTHING);
  const perMinute = 20 * 4;
  expect(Object.fromEntries(pointsBy(1_440, taken))).toEqual({ 0: 1_440 * perMinute, 1: 150 * perMinute });
  // Two hours of the second day have ended: what counted in them may be joined, but counts no more.
  const inPeriods = pointsBy(
    60,
    taken.filter((one) => one.record === hour),
  );
  expect(inPeriods.get(26)).toBe((30 * perMinute) / 2);
  const sliding = taken.filter((one) => one.record === slidingHour);
  for (let minute = 0; minute < minutes; minute += 1) {
    const since = (minutes - minute) * (perMinute / 2);
    const counted = sliding.filter((one) => one.minute >= MINUTE + minute);
    expect(counted.reduce((points, one) => points + one.points, 0)).toBeGreaterThanOrEqual(since);
  }
  // Nor does it count longer than a window more.
  const beforeLast = sliding.filter((one) => one.minute >= MINUTE + 1_440 + 60);
  expect(beforeLast.reduce((points, one) => points + one.points, 0)).toBe((90 * perMinute) / 2);
});

test('a sum that is older than the joined ones, as of a refund, is joined with them', () => {
  const sums = new PendingSums(2);
  for (const operation of ['list', 'create'])
    sums.add(bucketOf('acct_1'), operation, MINUTE + 60, 'admitted', 5);
  expect(sums.add(bucketOf('acct_1'), 'list', MINUTE + 3, 'settled', -2)).toBe(true);
  expect(sums.add(bucketOf('acct_2'), 'list', MINUTE + 3, 'settled', -2)).toBe(false);
  expect(sums.take(EVERYTHING)).toMatchObject([
    { operation: 'list', minute: MINUTE + 60, points: 3 },
    { operation: 'create', minute: MINUTE + 60, points: 5 },
  ]);
});
