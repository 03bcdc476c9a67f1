import { expect, it } from 'vitest';
import { History } from '../../../../src/observe/usage/history.ts';
import type { Window } from '../../../../src/observe/usage/windows.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;

const newOwner = () => ({ id: 'a', counts: undefined });

/** An admitted request. */
const requestOf = (points: number) => ({ points, requests: 1, refused: 0 });

function pointsIn(history: History, nowMs: number): Record<Window, number> {
  const points = (window: Window) => history.sum(window, nowMs).owners.get('a')?.points ?? 0;
  return { '10s': points('10s'), '1m': points('1m'), '10m': points('10m') };
}

it('each window holds its own length of time', () => {
  const history = new History();
  const a = newOwner();
  history.add(0, a, requestOf(5));
  expect(pointsIn(history, 9_999)).toEqual({ '10s': 5, '1m': 5, '10m': 5 });
  expect(pointsIn(history, 10 * SECOND_MS)).toEqual({ '10s': 0, '1m': 5, '10m': 5 });
  expect(pointsIn(history, MINUTE_MS - 1)).toEqual({ '10s': 0, '1m': 5, '10m': 5 });
  expect(pointsIn(history, MINUTE_MS)).toEqual({ '10s': 0, '1m': 0, '10m': 5 });
  history.add(5 * MINUTE_MS, a, requestOf(2));
  expect(pointsIn(history, 5 * MINUTE_MS)).toEqual({ '10s': 2, '1m': 2, '10m': 7 });
  expect(pointsIn(history, 10 * MINUTE_MS)).toEqual({ '10s': 0, '1m': 0, '10m': 2 });
  expect(pointsIn(history, 60 * MINUTE_MS)).toEqual({ '10s': 0, '1m': 0, '10m': 0 });
});

it('nothing is counted twice or lost while time passes', () => {
  const history = new History();
  const a = newOwner();
  for (let second = 0; second < 600; second++) {
    history.add(second * SECOND_MS + 500, a, requestOf(1));
    const expected = Math.min(second + 1, 600);
    expect(pointsIn(history, second * SECOND_MS + 600)['10m'], `after ${second} s`).toBe(expected);
    expect(pointsIn(history, second * SECOND_MS + 600)['10s']).toBe(Math.min(second + 1, 10));
  }
});
