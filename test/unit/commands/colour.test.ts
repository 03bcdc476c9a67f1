import { expect, test } from 'vitest';
import { errorLines, warningLine } from '../../../src/commands/terminal/error-lines.ts';
import { coloured, lineText } from '../../../src/commands/terminal/line.ts';
import { ConfigError } from '../../../src/config/problem.ts';

const terminal = { isTTY: true, hasColors: () => true };
const PROBLEM = { source: 'redis://user:secret@host', line: 3, path: 'a.b', message: 'is missing' };

test('a terminal gets colours; a pipe, a file, and a terminal without colours do not', () => {
  expect(coloured(terminal, 'red', 'text')).toBe('\x1b[31mtext\x1b[39m');
  expect(coloured({ ...terminal, isTTY: false }, 'red', 'text')).toBe('text');
  expect(coloured({ ...terminal, hasColors: () => false }, 'red', 'text')).toBe('text');
});

test('the place of a problem is coloured, and its text is not', () => {
  const lines = errorLines(new ConfigError([PROBLEM, PROBLEM])).map((line) => lineText(line, terminal));
  expect(lines).toEqual(Array(2).fill('\x1b[31mredis://***@host:3:\x1b[39m a.b: is missing'));
  expect(lineText(warningLine(PROBLEM), terminal)).toBe(
    '\x1b[33mredis://***@host:3: warning:\x1b[39m a.b: is missing',
  );
});
