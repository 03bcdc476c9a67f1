import fc from 'fast-check';
import { expect, it } from 'vitest';
import { backoffMs, jittered } from '../../../src/domain/backoff.ts';

const DOUBLING = { firstMs: 20, longestMs: 250, jitter: [1, 1] } as const;

it('each wait is twice as long as the one before, up to the longest', () => {
  const waits = [1, 2, 3, 4, 5, 6, 100_000].map((failures) => backoffMs(DOUBLING, failures));
  expect(waits).toEqual([20, 40, 80, 160, 250, 250, 250]);
});

it('without a failure the wait is the first one', () => {
  expect(backoffMs(DOUBLING, 0)).toBe(20);
});

it('jitter keeps a wait within its bounds', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100_000 }), (ms) => {
      expect(jittered(ms)).toBeGreaterThanOrEqual(Math.round(ms * 0.75));
      expect(jittered(ms)).toBeLessThanOrEqual(Math.round(ms * 1.25));
      expect(jittered(ms, [0.5, 1])).toBeLessThanOrEqual(ms);
    }),
  );
});
