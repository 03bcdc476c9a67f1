import fc from 'fast-check';
import { expect, test } from 'vitest';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { clockedMemory } from '../store/clocked-memory.ts';
import { ExactLog } from '../store/exact-log.ts';
import {
  type Ask,
  admittedBy,
  admittedExactly,
  arrivals,
  EXAMPLE,
  START_US,
  WINDOW_US,
} from './buckets-charged-together.ts';

/** Points admitted in each window after the first. */
function byWindow(asks: readonly Ask[], admitted: readonly boolean[]): number[] {
  const points: number[] = [];
  for (const [index, { atUs, cost }] of asks.entries()) {
    const window = Math.floor((atUs - START_US) / WINDOW_US);
    points[window] = (points[window] ?? 0) + (admitted[index] ? cost : 0);
  }
  return points.slice(1);
}

/** The figures that docs/guarantees.md, lua/README.md and docs/comparison.md give. */
test('one point that counts 9 ms too long leaves an Organization 68 of 500 points a window for good, and no window too many', async () => {
  const asks = arrivals(20);
  const admitted = await admittedBy(clockedMemory(), 'm', EXAMPLE, asks);
  expect(byWindow(asks, admittedExactly(EXAMPLE, asks))).toEqual(Array(19).fill(500));
  expect(byWindow(asks, admitted).slice(1)).toEqual(Array(18).fill(68));
  const log = new ExactLog();
  for (const [index, { atUs, cost }] of asks.entries()) if (admitted[index]) log.add(atUs, cost);
  expect(log.worstWindow(WINDOW_US)).toBeLessThanOrEqual(EXAMPLE.organization);
});

const step = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 0, max: 500_000 })),
  account: fc.constantFrom('one', 'other', 'third'),
  cost: fc.integer({ min: 1, max: 10 }),
});

test('buckets that are all below 500 points decide exactly as exact logs do, charged together too', async () => {
  let run = 0;
  const limits = fc.record({
    organization: fc.integer({ min: 10, max: 499 }),
    account: fc.integer({ min: 10, max: 499 }),
  });
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { maxLength: 300, size: 'max' }), async (each, steps) => {
      let atUs = START_US;
      const asks = steps.map(({ pauseUs, account, cost }) => {
        atUs += pauseUs;
        return { atUs, account, cost };
      });
      const admitted = await admittedBy(clockedMemory(), `${run++}`, each, asks);
      expect(admitted).toEqual(admittedExactly(each, asks));
    }),
    { numRuns: generatedCases(200), endOnFailure: true },
  );
});

test('a charge is denied only if a bucket of it is nearly full: all but 10 points of 500', async () => {
  const asks = arrivals(20);
  const admitted = await admittedBy(clockedMemory(), 'm', EXAMPLE, asks);
  const log = new ExactLog();
  const accounts = new Map<string, ExactLog>();
  for (const [index, { atUs, account, cost }] of asks.entries()) {
    const own = accounts.get(account) ?? new ExactLog();
    accounts.set(account, own);
    if (admitted[index]) {
      log.add(atUs, cost);
      own.add(atUs, cost);
      continue;
    }
    const organizationHolds = log.pointsBetween(atUs - WINDOW_US, atUs);
    const accountHolds = own.pointsBetween(atUs - WINDOW_US, atUs);
    const isNearlyFull =
      organizationHolds >= EXAMPLE.organization - 10 || accountHolds + cost > EXAMPLE.account;
    expect(isNearlyFull, `${account} at ${atUs}`).toBe(true);
  }
});
