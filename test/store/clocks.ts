import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bucketKey } from '../../src/store/keys.ts';
import type { Charge } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import type { ClockedStore } from './conformance.ts';
import { ExactLog } from './exact-log.ts';

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;

const skewedStep = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 300_000 }), fc.constant(10 * US_PER_SECOND)),
  backUs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 20_000_000 })),
  cost: fc.integer({ min: 1, max: 10 }),
});

/** Small jumps forward, and steps back of any size. */
const jumpingStep = fc.record({
  pauseUs: fc.integer({ min: 0, max: 600_000 }),
  stepUs: fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 1_000_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: -20_000_000, max: 0 }) },
  ),
  cost: fc.integer({ min: 1, max: 10 }),
});

/** The clock is behind the true one by this much, for this charge alone. */
const excursion = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 300_000 }), fc.integer({ min: 0, max: 10_000_000 })),
  behindUs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 5_000_000 })),
  cost: fc.integer({ min: 1, max: 10 }),
});

/** What every store guarantees when its clock steps: docs/decisions/0006. */
export function testsOfClocks(open: () => Promise<{ store: ClockedStore; prefix: string }>): void {
  test('a clock that runs back by more than a window locks nobody out for longer than a window, and admits nothing too much', async () => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 10);
    const backUs = START_US - 10 * US_PER_SECOND;
    expect((await store.charge(charge, START_US)).outcome).toBe('admitted');
    expect(await store.charge(charge, backUs)).toEqual({
      outcome: 'denied',
      buckets: [{ remaining: 0, resetAfterUs: 5 * US_PER_SECOND, retryAfterUs: 5 * US_PER_SECOND }],
    });
    expect((await store.charge(charge, backUs + 5 * US_PER_SECOND - 1)).outcome).toBe('denied');
    expect((await store.charge(charge, backUs + 5 * US_PER_SECOND)).outcome).toBe('admitted');
  });

  test('a clock that runs back by a window at most stands still for a bucket until it has caught up', async () => {
    const { store, prefix } = await open();
    const backUs = START_US - 4 * US_PER_SECOND;
    expect((await store.charge(chargeOf(prefix, 10, 6), START_US)).outcome).toBe('admitted');
    expect((await store.charge(chargeOf(prefix, 10, 4), backUs)).outcome).toBe('admitted');
    const waitUs = 8 * US_PER_SECOND;
    const denied = {
      outcome: 'denied',
      buckets: [{ remaining: 0, resetAfterUs: waitUs, retryAfterUs: waitUs }],
    };
    const charge = chargeOf(prefix, 10, 1);
    expect(await store.peek(charge, backUs + US_PER_SECOND)).toMatchObject({ outcome: 'denied' });
    expect(await store.charge(charge, backUs + US_PER_SECOND)).toEqual(denied);
    expect((await store.charge(charge, START_US + 5 * US_PER_SECOND - 1)).outcome).toBe('denied');
    expect((await store.charge(charge, START_US + 5 * US_PER_SECOND)).outcome).toBe('admitted');
  });

  test('however often the clock runs back, no true window holds too much, and two quiet windows open every bucket', async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(skewedStep, { maxLength: 60, size: 'max' }), async (steps) => {
        const windowUs = 5 * US_PER_SECOND;
        const log = new ExactLog();
        let [trueUs, skewUs] = [START_US, 0];
        const buckets = [
          { key: bucketKey(prefix, 'a', 'account-read', `${run++}`), limit: 20, windowSeconds: 5 },
        ];
        for (const { pauseUs, backUs, cost } of steps) {
          trueUs += pauseUs;
          skewUs -= backUs;
          const decision = await store.charge({ buckets, cost }, trueUs + skewUs);
          if (decision.outcome === 'admitted') log.add(trueUs, cost);
          if (pauseUs >= 2 * windowUs && backUs === 0) expect(decision.outcome).toBe('admitted');
        }
        expect(log.worstWindow(windowUs)).toBeLessThanOrEqual(20);
      }),
      { numRuns: generatedCases(60), endOnFailure: true },
    );
  });

  test("a clock that goes back by a window at most and forth again admits nothing twice by the bucket's time", async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(excursion, { maxLength: 60, size: 'max' }), async (steps) => {
        const windowUs = 5 * US_PER_SECOND;
        const log = new ExactLog();
        const buckets = [
          { key: bucketKey(prefix, 'a', 'account-read', `${run++}`), limit: 20, windowSeconds: 5 },
        ];
        // By the latest time that an admitted charge saw, which is the bucket's own.
        let [trueUs, latestUs, deniedUs] = [START_US, 0, 0];
        for (const { pauseUs, behindUs, cost } of steps) {
          trueUs += pauseUs;
          // No store writes down when it denied something, so the clock does not go back behind that.
          const clockUs = Math.max(deniedUs, trueUs - behindUs);
          const decision = await store.charge({ buckets, cost }, clockUs);
          if (decision.outcome === 'admitted') {
            latestUs = Math.max(latestUs, clockUs);
            log.add(latestUs, cost);
          } else {
            deniedUs = clockUs;
          }
        }
        expect(log.worstWindow(windowUs)).toBeLessThanOrEqual(20);
      }),
      { numRuns: generatedCases(60), endOnFailure: true },
    );
  });

  test('a clock that jumps forward, on its return too, frees points early by no more than its jumps', async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(jumpingStep, { maxLength: 60, size: 'max' }), async (steps) => {
        const windowUs = 5 * US_PER_SECOND;
        const log = new ExactLog();
        let [trueUs, skewUs, jumpedUs] = [START_US, 0, 0];
        const buckets = [
          { key: bucketKey(prefix, 'a', 'account-read', `${run++}`), limit: 20, windowSeconds: 5 },
        ];
        for (const { pauseUs, stepUs, cost } of steps) {
          trueUs += pauseUs;
          skewUs += stepUs;
          jumpedUs += Math.max(0, stepUs);
          const decision = await store.charge({ buckets, cost }, trueUs + skewUs);
          if (decision.outcome === 'admitted') log.add(trueUs, cost);
        }
        expect(log.worstWindow(Math.max(0, windowUs - jumpedUs))).toBeLessThanOrEqual(20);
      }),
      { numRuns: generatedCases(60), endOnFailure: true },
    );
  });

  test('a clock that jumps forward locks nobody out, neither then nor when it comes back', async () => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 10);
    const aheadUs = START_US + 3600 * US_PER_SECOND;
    await store.charge(charge, START_US);
    expect((await store.charge(charge, aheadUs)).outcome).toBe('admitted');
    expect((await store.charge(charge, START_US)).outcome).toBe('denied');
    expect((await store.charge(charge, START_US + 5 * US_PER_SECOND)).outcome).toBe('admitted');
  });
}

function chargeOf(prefix: string, limit: number, cost: number): Charge {
  return { buckets: [{ key: bucketKey(prefix, 'a', 'account-read', 'a'), limit, windowSeconds: 5 }], cost };
}
