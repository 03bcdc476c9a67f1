import { expect, it } from 'vitest';
import { lineOfPath } from '../../../../src/config/reader/yaml-text.ts';

const overridesOf = (points: number) =>
  `accounts:\n${Array.from({ length: 20_000 }, (_, index) => `  a${index}: { account-read: ${points} }\n`).join('')}`;

const cpuOf = (run: () => void) => {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
};

it('several lines of one large text take as long as one', () => {
  const text = overridesOf(5);
  const first = cpuOf(() => expect(lineOfPath(text, ['accounts', 'a0', 'account-read'])).toBe(2));
  const others = cpuOf(() => {
    for (let index = 1; index <= 10; index++)
      expect(lineOfPath(text, ['accounts', `a${index}`])).toBe(index + 2);
  });
  expect(others).toBeLessThan(first * 2);
});

it('the lines of another text are its own', () => {
  expect(lineOfPath('accounts:\n  a: 1', ['accounts', 'a'])).toBe(2);
  expect(lineOfPath('accounts:\n\n  a: 1', ['accounts', 'a'])).toBe(3);
  expect(lineOfPath('accounts:\n  a: 1', ['accounts', 'a'])).toBe(2);
});
