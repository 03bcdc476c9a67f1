import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Awaitable } from '../../src/domain/awaitable.ts';
import { bucketKey } from '../../src/store/keys.ts';
import { readBuckets } from '../../src/store/read-buckets.ts';
import type { Charge, Decision, Settled, Settlement } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { testsOfClocks } from './clocks.ts';
import { ExactLog } from './exact-log.ts';
import { testsOfHolding } from './holding.ts';
import { testsOfPeriods } from './periods.ts';
import { testsOfSettling } from './settling.ts';
import { type Step, Walk } from './walk.ts';

/** A store whose time is an argument. */
export interface ClockedStore {
  charge(charge: Charge, nowUs: number): Awaitable<Decision>;
  peek(charge: Charge, nowUs: number): Promise<Decision>;
  settle(settlement: Settlement, nowUs: number): Awaitable<Settled>;
}

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;

const pause = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 6, arbitrary: fc.double({ min: 0, max: 0.03, noNaN: true }) },
  { weight: 2, arbitrary: fc.double({ min: 0, max: 0.7, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(1, 1.02, 3) },
);

const step: fc.Arbitrary<Step> = fc.record({
  pause,
  account: fc.integer({ min: 0, max: 1 }),
  cost: fc.integer({ min: 1, max: 10 }),
  isWithOrganization: fc.boolean(),
});

const scenario = fc.record({
  windowSeconds: fc.constantFrom(5, 7, 60),
  accountLimit: fc.integer({ min: 10, max: 60 }),
  organizationLimit: fc.integer({ min: 10, max: 90 }),
  steps: fc.array(step, { minLength: 1, maxLength: 120, size: 'max' }),
});

/**
 * What every store guarantees (DESIGN section 3), whatever arrives when.
 *
 * @param open gives a store and a fresh prefix
 * @param runs how many scenarios are tried in CI
 */
export function testsOfConformance(
  open: () => Promise<{ store: ClockedStore; prefix: string }>,
  runs = 60,
): void {
  test('a bucket may cost more than the others of its charge', async () => {
    const { store, prefix } = await open();
    const buckets = [
      { key: bucketKey(prefix, 'org', 'large', 'a'), limit: 10, windowSeconds: 60, cost: 7 },
      { key: bucketKey(prefix, 'org', 'usual', 'a'), limit: 10, windowSeconds: 60 },
    ];
    const left = ({ buckets: states }: Exclude<Decision, { outcome: 'uncounted' }>) =>
      states.map((one) => one?.remaining);
    const admitted = await store.charge({ buckets, cost: 1 }, START_US);
    const denied = await store.charge({ buckets, cost: 1 }, START_US);
    if (admitted.outcome !== 'admitted' || denied.outcome !== 'denied') throw new Error(denied.outcome);
    expect([left(admitted), left(denied)]).toEqual([
      [3, 9],
      [3, 9],
    ]);
  });

  test('no window ever holds more than the limit, nothing fitting is denied, and a denial spends nothing', async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async (plan) => {
        const walk = new Walk(store, `${prefix}${run++}`, plan);
        for (const each of plan.steps) await walk.take(each);
        walk.expectStrict();
      }),
      { numRuns: generatedCases(runs), endOnFailure: true },
    );
  });

  test('while replicas disagree on the length of the window, the shortest one holds no more than the limit', async () => {
    const { store, prefix } = await open();
    let run = 0;
    const length = fc.constantFrom(1, 5);
    const steps = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 600_000 }), length, fc.integer({ min: 1, max: 10 })),
      {
        maxLength: 100,
        size: 'max',
      },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        const log = new ExactLog();
        const bucket = { key: bucketKey(prefix, 'a', 'account-read', `${run++}`), limit: 20 };
        let nowUs = START_US;
        for (const [pauseUs, windowSeconds, cost] of plan) {
          nowUs += pauseUs;
          const buckets = [{ ...bucket, windowSeconds }];
          const { outcome } = await store.charge({ buckets, cost }, nowUs);
          if (outcome === 'admitted') log.add(nowUs, cost);
        }
        expect(log.worstWindow(US_PER_SECOND)).toBeLessThanOrEqual(20);
      }),
      { numRuns: generatedCases((runs * 2) / 3), endOnFailure: true },
    );
  });

  test('peek returns what charge would, and spends nothing', async () => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 7);
    const before = await store.peek(charge, START_US);
    expect(before).toEqual({
      outcome: 'admitted',
      buckets: [{ remaining: 10, resetAfterUs: 0, retryAfterUs: 0 }],
      chargedAtUs: START_US,
    });
    await store.charge(charge, START_US);
    expect(await store.peek(charge, START_US + 1000)).toEqual(await store.charge(charge, START_US + 1000));
  });

  test('a reading gives what was used, when the oldest points return, and when all have, and spends nothing', async () => {
    const { store, prefix } = await open();
    const windowSeconds = 10;
    const key = bucketKey(prefix, 'read', 'account-read', 'read');
    const charge = (cost: number, afterS: number) =>
      store.charge(
        { buckets: [{ key, limit: 100, windowSeconds }], cost },
        START_US + afterS * US_PER_SECOND,
      );
    const read = (afterS: number) =>
      readBuckets({ peek: (peeked) => store.peek(peeked, START_US + afterS * US_PER_SECOND) }, [
        { key, windowSeconds },
      ]);
    const unused = { used: 0, nextPointsAfterUs: 0, resetAfterUs: 0 };
    expect(await read(0)).toEqual({ outcome: 'read', buckets: [unused] });
    await charge(3, 0);
    await charge(2, 3);
    const used = { used: 5, nextPointsAfterUs: 6 * US_PER_SECOND, resetAfterUs: 9 * US_PER_SECOND };
    expect(await read(4)).toEqual({ outcome: 'read', buckets: [used] });
    expect(await read(4)).toEqual({ outcome: 'read', buckets: [used] });
  });

  test('of an owner with more buckets than one charge may have, each is read', async () => {
    const { store, prefix } = await open();
    const buckets = Array.from({ length: 70 }, (_, index) => ({
      key: bucketKey(prefix, 'acct_1', `limit-${index}`, 'acct_1'),
      windowSeconds: 10,
    }));
    for (const index of [0, 31, 32, 69]) {
      const charged = buckets.slice(index, index + 1).map((bucket) => ({ ...bucket, limit: 100 }));
      await store.charge({ buckets: charged, cost: index + 1 }, START_US);
    }
    const readings = await readBuckets({ peek: (peeked) => store.peek(peeked, START_US) }, buckets);
    const used = readings.outcome === 'read' ? readings.buckets.map((one) => one.used) : readings;
    expect(used).toEqual(buckets.map((_, index) => ([0, 31, 32, 69].includes(index) ? index + 1 : 0)));
  });

  test('a shadow bucket counts what fits, reports what it would have refused, and refuses nothing', async () => {
    const { store, prefix } = await open();
    const { buckets } = chargeOf(prefix, 10, 7);
    const shadowed: Charge = {
      buckets: buckets.map((bucket) => ({ ...bucket, shadow: true })),
      cost: 7,
    };
    await store.charge(shadowed, START_US);
    expect(await store.charge(shadowed, START_US + 10)).toEqual({
      outcome: 'admitted',
      buckets: [{ remaining: 3, resetAfterUs: 5 * US_PER_SECOND - 10, retryAfterUs: 5 * US_PER_SECOND - 10 }],
      chargedAtUs: START_US + 10,
    });
  });

  test('a raised limit holds at once, and so does a lowered one', async () => {
    const { store, prefix } = await open();
    const outcomes: string[] = [];
    for (const limit of [10, 20, 5]) {
      const { outcome, ...rest } = await store.charge(chargeOf(prefix, limit, 7), START_US);
      outcomes.push(outcome);
      if ('buckets' in rest) expect(rest.buckets[0]?.remaining).toBeGreaterThanOrEqual(0);
    }
    expect(outcomes).toEqual(['admitted', 'admitted', 'denied']);
  });

  testsOfClocks(open);
  testsOfSettling(open);
  testsOfHolding(open);
  testsOfPeriods(open, runs);

  test.each<[string, (charge: Charge) => Charge]>([
    ['a cost that is no whole number', (charge) => ({ ...charge, cost: 1.5 })],
    ['a cost of nothing', (charge) => ({ ...charge, cost: 0 })],
    [
      'a limit that is no number',
      ({ buckets, ...rest }) => ({ ...rest, buckets: buckets.map((b) => ({ ...b, limit: Number.NaN })) }),
    ],
    ['one bucket twice', ({ buckets, ...rest }) => ({ ...rest, buckets: [...buckets, ...buckets] })],
    ['no bucket', (charge) => ({ ...charge, buckets: [] })],
  ])('a charge with %s is not counted', async (_what, spoil) => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 1);
    expect(await store.charge(spoil(charge), START_US)).toEqual({ outcome: 'uncounted', reason: 'invalid' });
    expect(await store.peek(charge, START_US)).toMatchObject({ buckets: [{ remaining: 10 }] });
  });

  test('a cost above the limit is denied, and nothing is spent', async () => {
    const { store, prefix } = await open();
    expect(await store.charge(chargeOf(prefix, 10, 11), START_US)).toEqual({
      outcome: 'denied',
      buckets: [{ remaining: 10, resetAfterUs: 0, retryAfterUs: 5 * US_PER_SECOND }],
    });
  });
}

function chargeOf(prefix: string, limit: number, cost: number): Charge {
  return { buckets: [{ key: bucketKey(prefix, 'a', 'account-read', 'a'), limit, windowSeconds: 5 }], cost };
}
