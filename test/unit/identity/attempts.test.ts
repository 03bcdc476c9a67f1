import { expect, it } from 'vitest';
import { Attempts } from '../../../src/identity/provider/attempts.ts';

function attemptsOf(): Attempts {
  return new Attempts(2, 100, 1000);
}

function failing(times: number): Attempts {
  const attempts = attemptsOf();
  for (let count = 0; count < times; count++) attempts.failed(0);
  return attempts;
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
  const attempts = failing(3);
  expect(attempts.take(100)).toBe(true);
  expect(attempts.take(100)).toBe(false);
});

it('one question that fails again and again costs no wait', () => {
  const attempts = attemptsOf();
  for (let count = 0; count < 9; count++) attempts.failed(0, 'a');
  attempts.failed(0, 'b');
  expect(attempts.take(0)).toBe(true);
  attempts.failed(0, 'c');
  expect(attempts.take(0)).toBe(false);
});

it('during a wait, the same question makes it longer', () => {
  const attempts = attemptsOf();
  for (const question of ['a', 'b', 'c', 'c']) attempts.failed(0, question);
  expect(attempts.take(200 * 0.74)).toBe(false);
  expect(attempts.take(200)).toBe(true);
});

it('a success ends it', () => {
  const attempts = failing(9);
  attempts.succeeded();
  expect(attempts.isFailing).toBe(false);
  expect(attempts.take(0)).toBe(true);
});
