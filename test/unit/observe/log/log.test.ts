import { closeSync, openSync } from 'node:fs';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BatchedOutput, openOutput } from '../../../../src/observe/log/log.ts';

const written: string[] = [];
const output = new BatchedOutput({ write: (text) => void written.push(text) });

beforeEach(() => {
  written.length = 0;
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test('the lines of five milliseconds are one write, in their order', () => {
  output.write('a\n');
  vi.advanceTimersByTime(4);
  output.write('b\n');
  expect(written).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(written).toEqual(['a\nb\n']);
  output.write('c\n');
  vi.advanceTimersByTime(5);
  expect(written).toEqual(['a\nb\n', 'c\n']);
});

test('very many lines do not wait for the time', () => {
  const line = `${'x'.repeat(999)}\n`;
  for (let count = 0; count < 1_000; count++) output.write(line);
  expect(written.length).toBeGreaterThan(5);
  vi.advanceTimersByTime(5);
  expect(written.join('')).toBe(line.repeat(1_000));
});

test('what is left can be written at once, and only once', () => {
  output.write('last\n');
  output.flushSync();
  expect(written).toEqual(['last\n']);
  output.flushSync();
  vi.advanceTimersByTime(5);
  expect(written).toEqual(['last\n']);
});

test('a disk that is full ends no gateway, and is reported once a minute', () => {
  const full = openSync('/dev/full', 'w');
  const exits = process.listeners('exit');
  const warnings: string[] = [];
  const log = openOutput(full, (text) => void warnings.push(text));
  for (let count = 0; count < 3; count++) {
    log.write('line\n');
    log.flushSync();
  }
  expect(warnings).toEqual(['The log cannot be written (ENOSPC). Weir serves on, and lines may be lost.\n']);
  for (const exit of process.listeners('exit')) if (!exits.includes(exit)) process.off('exit', exit);
  closeSync(full);
});
