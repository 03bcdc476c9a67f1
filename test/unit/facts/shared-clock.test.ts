import { expect, it } from 'vitest';
import { SharedClock } from '../../../src/facts/shared-clock.ts';

/** A process whose own clock is ahead of the clock of Redis. */
function processWith(aheadMs: number) {
  const state = { trueMs: 1_000_000, aheadMs, redisAheadMs: 0 };
  const clock = new SharedClock(
    () => state.trueMs + state.aheadMs,
    () => state.trueMs - 900_000,
  );
  const read = (goMs: number, comeMs: number) => {
    const sentMs = state.trueMs - 900_000;
    state.trueMs += goMs;
    const nowMs = state.trueMs + state.redisAheadMs;
    state.trueMs += comeMs;
    clock.read({ nowMs, sentMs, answeredMs: state.trueMs - 900_000 });
  };
  return { state, clock, read };
}

it('is its own before the first reading, and then the clock of Redis, however wrong its own is', () => {
  const { state, clock, read } = processWith(10_000);
  expect([clock.nowMs(), clock.offsetMs, clock.isOwnWrong]).toEqual([1_010_000, undefined, false]);
  read(1, 1);
  expect(Math.abs(clock.nowMs() - state.trueMs)).toBeLessThanOrEqual(2);
  expect(clock.offsetMs).toBeGreaterThan(9_990);
  expect(clock.isOwnWrong).toBe(true);
  state.aheadMs = -60_000;
  state.trueMs += 5_000;
  expect(Math.abs(clock.nowMs() - state.trueMs)).toBeLessThanOrEqual(2);
});

it('a late answer does not spoil an exact reading', () => {
  const { state, clock, read } = processWith(0);
  read(1, 1);
  read(0, 900);
  expect(Math.abs(clock.nowMs() - state.trueMs)).toBeLessThanOrEqual(2);
  expect(clock.isOwnWrong).toBe(false);
});

it('a late first answer is corrected by the next, and makes no clock wrong', () => {
  const { state, clock, read } = processWith(900);
  read(0, 900);
  expect(clock.isOwnWrong).toBe(false);
  read(1, 1);
  expect(Math.abs(clock.nowMs() - state.trueMs)).toBeLessThanOrEqual(2);
  expect(clock.isOwnWrong).toBe(false);
});

it('a clock of Redis that is set is followed at the next reading', () => {
  const { state, clock, read } = processWith(0);
  read(1, 1);
  state.redisAheadMs = -30_000;
  read(200, 200);
  expect(Math.abs(clock.nowMs() - (state.trueMs - 30_000))).toBeLessThanOrEqual(202);
});

it('says that it was set back, by the first reading or a later one, and not for a small step', () => {
  const { state, clock, read } = processWith(3_600_000);
  let count = 0;
  clock.onSetBack = () => {
    count += 1;
  };
  read(1, 1);
  expect(count).toBe(1);
  state.redisAheadMs = -500;
  read(1, 1);
  state.redisAheadMs = 60_000;
  read(1, 1);
  expect(count).toBe(1);
  state.redisAheadMs = 0;
  read(1, 1);
  expect(count).toBe(2);
});

it('a server that is not the reference counts only until the reference has been read', () => {
  const { state, clock } = processWith(60_000);
  const reading = (nowMs: number) => ({ nowMs, sentMs: 100_000, answeredMs: 100_000 });
  clock.read(reading(state.trueMs + 5_000), false);
  expect(clock.nowMs()).toBe(state.trueMs + 5_000);
  clock.read(reading(state.trueMs));
  clock.read(reading(state.trueMs + 5_000), false);
  expect(clock.nowMs()).toBe(state.trueMs);
});
