import { expect, it } from 'vitest';
import { Reconnection } from '../../../src/store/redis/connection/reconnection.ts';

it('waits longer after each attempt, and never for a third of a second', () => {
  const means = Array.from({ length: 8 }, () => 0);
  for (let trial = 0; trial < 200; trial++) {
    const { nextDelayMs } = new Reconnection();
    for (const attempt of means.keys()) means[attempt] = (means[attempt] ?? 0) + nextDelayMs() / 200;
  }
  expect(means[0]).toBeLessThan(25);
  expect(means.slice(0, 5)).toEqual(means.slice(0, 5).toSorted((a, b) => a - b));
  const { nextDelayMs } = new Reconnection();
  expect(Math.max(...Array.from({ length: 1_000 }, nextDelayMs))).toBeLessThan(1_000 / 3);
});
