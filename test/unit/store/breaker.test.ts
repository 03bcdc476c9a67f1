import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { pace } from '../../../src/domain/pace.ts';
import { Breaker } from '../../../src/store/dispatch/breaker.ts';
import type { BreakerState } from '../../../src/store/store-observer.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function breakerOver(store: { isBack: boolean }) {
  const states: BreakerState[] = [];
  let probes = 0;
  const breaker = new Breaker(
    async () => {
      probes += 1;
      return store.isBack ? undefined : 'busy';
    },
    (state) => states.push(state),
  );
  return { breaker, states, probes: () => probes };
}

test('three consecutive failures open it, and it reports their reason', () => {
  const { breaker } = breakerOver({ isBack: false });
  breaker.failed('deadline');
  breaker.failed('deadline');
  breaker.succeeded();
  breaker.failed('oom');
  breaker.failed('oom');
  expect(breaker.reason).toBeUndefined();
  breaker.failed('oom');
  expect(breaker.reason).toBe('oom');
});

test('it probes at growing intervals, and closes on the first success', async () => {
  const store = { isBack: false };
  const { breaker, states, probes } = breakerOver(store);
  for (let failure = 0; failure < 3; failure++) breaker.failed('deadline');
  await vi.advanceTimersByTimeAsync(1.4 * pace.probes.firstMs);
  expect(probes()).toBe(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(probes()).toBeLessThan(60_000 / (0.74 * pace.probes.longestMs));
  expect(breaker.reason).toBe('busy');
  store.isBack = true;
  await vi.advanceTimersByTimeAsync(1.26 * pace.probes.longestMs);
  expect(breaker.reason).toBeUndefined();
  expect(states.slice(0, 4)).toEqual(['open', 'half-open', 'open', 'half-open']);
  expect(states.at(-1)).toBe('closed');
});

test('a new connection is probed at once', async () => {
  const store = { isBack: false };
  const { breaker } = breakerOver(store);
  for (let failure = 0; failure < 3; failure++) breaker.failed('deadline');
  store.isBack = true;
  breaker.probeSoon();
  await vi.advanceTimersByTimeAsync(0);
  expect(breaker.reason).toBeUndefined();
});
