import { expect, it } from 'vitest';
import { quantileMs } from '../../../../src/admin/fleet/pulse.ts';

it.each([
  [[], 0.5, null],
  [[0, 0], 0.99, null],
  [[10], 0.5, 0.25],
  [[10, 10], 0.5, 0.5],
  [[10, 10], 0.75, 0.75],
  [[0, 0, 4], 1, 2.5],
  // Above the highest bound there is nothing to interpolate to.
  [[...Array.from({ length: 14 }, () => 0), 3], 0.5, 10_000],
])('of %j, the quantile %d is %j ms', (counts, share, expected) => {
  expect(quantileMs(counts, share)).toBe(expected);
});
