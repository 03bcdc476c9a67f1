import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PendingSums, type RecordedSum } from '../../../../src/store/journal/sums.ts';
import { recordedLimit } from '../../../../src/store/store.ts';

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

test('nothing is lost or counted twice, however sums are added, joined and taken, and only what has no room is dropped', () => {
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        owner: fc.integer({ min: 0, max: 60 }),
        operation: fc.constantFrom('list', 'create'),
        minute: fc.integer({ min: 0, max: 34 }),
        recorded: fc.constantFrom('admitted' as const, 'refused' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ take: fc.integer({ min: 1, max: 150 }) }) },
  );
  const run = fc.array(step, { minLength: 100, maxLength: 1_500 });
  fc.assert(
    fc.property(run, (steps) => {
      const sums = new PendingSums(100);
      const added = new Map<string, number>();
      const taken = new Map<string, number>();
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
          const bucket = bucketOf(`acct_${one.owner}`);
          const minute = MINUTE + one.minute;
          if (sums.add(bucket, one.operation, minute, one.recorded, 1))
            note(added, minute, bucket.key, one.operation, 1);
          // All sums are joined, so each of a hundred owners and operations has one.
          else expect(sums.size).toBeGreaterThanOrEqual(100);
          expect(sums.size).toBeLessThanOrEqual(105);
        }
      }
      noteTaken(sums.take(EVERYTHING));
      expect(sums.size).toBe(0);
      expect(taken).toEqual(added);
    }),
  );
});
