import { expect, it } from 'vitest';
import { unixUs } from '../../../src/domain/clock.ts';

it("two readings differ by the monotonic clock's difference, to the microsecond", () => {
  const nowMs = performance.now();
  expect(unixUs(nowMs + 0.25, nowMs) - unixUs(nowMs, nowMs)).toBe(250);
});

it('after the wall clock was set, results follow it', () => {
  const nowMs = performance.now();
  // A monotonic clock an hour behind looks like a wall clock that was set forward by an hour.
  const behindMs = nowMs - 3_600_000;
  const setUs = unixUs(behindMs, behindMs);
  expect(Math.abs(setUs / 1000 - Date.now())).toBeLessThan(1_000);
  expect(Math.abs(unixUs(nowMs, nowMs) / 1000 - Date.now())).toBeLessThan(1_000);
});
