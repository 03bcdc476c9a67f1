import { expect, test } from 'vitest';
import {
  exactDuration,
  parseDuration,
  roundedDuration,
  windowText,
  writtenDuration,
} from '../../../src/domain/duration.ts';

test.each([
  ['1s', 1],
  ['90s', 90],
  ['5m', 300],
  ['24h', 86_400],
  ['30d', 2_592_000],
])('%s is read as %i seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
  expect(parseDuration(writtenDuration(seconds))).toBe(seconds);
});

test.each(['', '5', 's', '1.5h', '-1h', ' 1h', '1 h', '1H', '1w', '1hh', '12345678s'])(
  '%j is not a duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined();
  },
);

test.each([
  [0, '0 s', '0 s', 'in 0 s'],
  [0.8, '0.8 s', '0.8 s', 'in 0.8 s'],
  [1, '1 s', '1 s', 'per second'],
  [60, '1 min', '60 s', 'per minute'],
  [90, '90 s', '90 s', 'in 90 s'],
  [300, '5 min', '5 min', 'in 5 min'],
  [3_600, '1 h', '60 min', 'per hour'],
  [3_601, '3601 s', '60 min', 'in 3601 s'],
  [86_400, '1 day', '24 h', 'per day'],
  [2_592_000, '30 days', '30 days', 'in 30 days'],
])('%f seconds are shown exactly, rounded and as a window', (seconds, exact, rounded, window) => {
  expect([exactDuration(seconds), roundedDuration(seconds), windowText(seconds)]).toEqual([
    exact,
    rounded,
    window,
  ]);
});

test('files get the longest unit that divides a duration', () => {
  expect([90, 300, 2_592_000].map(writtenDuration)).toEqual(['90s', '5m', '30d']);
});

test('a wait is rounded up', () => {
  expect(roundedDuration(7_201, Math.ceil)).toBe('3 h');
});
