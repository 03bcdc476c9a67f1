import { expect, it } from 'vitest';
import { Backoff } from '../../../src/identity/provider/backoff.ts';

const OPTIONS = { tolerated: 2, firstMs: 100, longestMs: 1000 };

function failing(times: number): Backoff {
  const backoff = new Backoff(OPTIONS);
  for (let count = 0; count < times; count++) backoff.failed(0);
  return backoff;
}

it('accidents cost no wait', () => {
  expect(failing(2).take(0)).toBe(true);
  expect(failing(2).isFailing).toBe(true);
});

it('waits double from the shortest to the longest', () => {
  for (const [failures, waitMs] of [
    [3, 100],
    [4, 200],
    [5, 400],
    [9, 1000],
    [60, 1000],
  ] as const) {
    expect(failing(failures).take(waitMs * 0.74)).toBe(false);
    expect(failing(failures).take(waitMs)).toBe(true);
  }
});

it('after a wait there is one try, not one for everybody', () => {
  const backoff = failing(3);
  expect(backoff.take(100)).toBe(true);
  expect(backoff.take(100)).toBe(false);
});

it('one question that fails again and again costs no wait', () => {
  const backoff = new Backoff(OPTIONS);
  for (let count = 0; count < 9; count++) backoff.failed(0, 'a');
  backoff.failed(0, 'b');
  expect(backoff.take(0)).toBe(true);
  backoff.failed(0, 'c');
  expect(backoff.take(0)).toBe(false);
});

it('during a wait, the same question makes it longer', () => {
  const backoff = new Backoff(OPTIONS);
  for (const question of ['a', 'b', 'c', 'c']) backoff.failed(0, question);
  expect(backoff.take(200 * 0.74)).toBe(false);
  expect(backoff.take(200)).toBe(true);
});

it('a success ends it', () => {
  const backoff = failing(9);
  backoff.succeeded();
  expect(backoff.isFailing).toBe(false);
  expect(backoff.take(0)).toBe(true);
});
