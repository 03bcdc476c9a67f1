import { expect, test } from 'vitest';
import { bucketKey } from '../../../src/store/keys.ts';
import { NewWindows } from '../../../src/store/redis/new-windows.ts';
import type { Charge } from '../../../src/store/store.ts';

const DAY_SECONDS = 86_400;

/** A charge to buckets of these names and windows. */
function chargesOf(windows: Readonly<Record<string, number>>): Charge[] {
  const buckets = Object.entries(windows).map(([bucket, windowSeconds]) => ({
    key: bucketKey('weir', 'org', bucket, 'acct'),
    limit: 5,
    windowSeconds,
  }));
  return [{ buckets, cost: 1 }];
}

/** Uses a window every 100 ms. Returns when it was no longer new. */
function settles(newWindows: NewWindows, windowSeconds: number, fromMs: number): number {
  let nowMs = fromMs;
  while (newWindows.areIn(chargesOf({ month: windowSeconds }), nowMs)) nowMs += 100;
  return nowMs;
}

test.each([1, 60])(
  'a window of %i s is new until a key of any shorter one has expired, and not for good',
  (windowSeconds) => {
    const tookMs = settles(new NewWindows(), windowSeconds, 0);
    expect(tookMs).toBeGreaterThanOrEqual(2 * windowSeconds * 1000);
    expect(tookMs).toBeLessThanOrEqual(2 * windowSeconds * 1000 + 10_000);
  },
);

test.each([3600, 31 * DAY_SECONDS])(
  'a window of %i s is new for two minutes, after which the script renews the keys that it finds',
  (windowSeconds) => {
    const tookMs = settles(new NewWindows(), windowSeconds, 0);
    expect(tookMs).toBeGreaterThanOrEqual(120_000);
    expect(tookMs).toBeLessThanOrEqual(130_000);
  },
);

test('a window is new again after another one was used in its place', () => {
  const newWindows = new NewWindows();
  let nowMs = settles(newWindows, 60, 0);
  expect(newWindows.areIn(chargesOf({ month: 60 }), nowMs)).toBe(false);
  nowMs = settles(newWindows, 1, nowMs + 100);
  expect(newWindows.areIn(chargesOf({ month: 60 }), nowMs + 100)).toBe(true);
});

test('windows of different buckets are not new for each other, and one that another bucket has used is', () => {
  const newWindows = new NewWindows();
  const settled = chargesOf({ second: 1, minute: 60 });
  for (let nowMs = 0; nowMs < 200_000; nowMs += 100) newWindows.areIn(settled, nowMs);
  expect(newWindows.areIn(settled, 200_000)).toBe(false);
  expect(newWindows.areIn(chargesOf({ second: 1, minute: 60, other: 5 }), 200_000)).toBe(true);
  expect(newWindows.areIn(chargesOf({ second: 60, minute: 60 }), 200_000)).toBe(true);
});

test('a new window is found behind charges that differ in their keys alone', () => {
  const newWindows = new NewWindows();
  const kind = {};
  const settled = chargesOf({ second: 1 }).map((charge) => ({ ...charge, kind }));
  for (let nowMs = 0; nowMs < 10_000; nowMs += 100) newWindows.areIn(settled, nowMs);
  const charges = [...settled, ...settled, ...chargesOf({ other: 5 }), ...settled];
  expect(newWindows.areIn([...settled, ...settled], 10_000)).toBe(false);
  expect(newWindows.areIn(charges, 10_000)).toBe(true);
});
