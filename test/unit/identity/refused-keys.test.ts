import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RefusedKeys } from '../../../src/identity/refused-keys.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function refusalsOf(maxKeys: number): RefusedKeys {
  return new RefusedKeys({ maxKeys, nowMs: Date.now });
}

it('the number of cached made-up keys is limited', () => {
  const refusals = refusalsOf(100);
  for (let index = 0; index < 10_000; index++) {
    refusals.add(`key-${index}`, Date.now() + 10_000);
    expect(refusals.size).toBeLessThanOrEqual(100);
  }
  expect([refusals.has('key-9899'), refusals.has('key-9900'), refusals.has('key-9999')]).toEqual([
    false,
    true,
    true,
  ]);
});

it('a refusal is removed when it expires, even without another lookup', async () => {
  const refusals = refusalsOf(100);
  for (let index = 0; index < 60; index++) {
    refusals.add(`key-${index}`, Date.now() + 10_000);
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(refusals.size).toBe(60);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(refusals.size).toBeLessThanOrEqual(10);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(refusals.size).toBe(0);
});

it('a key that is refused again gets a new expiry', async () => {
  const refusals = refusalsOf(2);
  refusals.add('a', Date.now() + 1_000);
  refusals.add('b', Date.now() + 1_000);
  refusals.add('a', Date.now() + 2_000);
  refusals.add('c', Date.now() + 2_000);
  expect([refusals.has('a'), refusals.has('b')]).toEqual([true, false]);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(refusals.has('a')).toBe(true);
  refusals.delete('a');
  expect(refusals.has('a')).toBe(false);
});
