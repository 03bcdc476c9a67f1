import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { TurnOutput } from '../../../src/commands/log/turn-output.ts';

const written: string[] = [];
const output = new TurnOutput({ write: (text) => void written.push(text) });

test('the lines of one turn are one write, in their order', async () => {
  written.length = 0;
  for (const line of ['a\n', 'b\n', 'c\n']) output.write(line);
  expect(written).toEqual([]);
  await setImmediate();
  expect(written).toEqual(['a\nb\nc\n']);
  output.write('d\n');
  await setImmediate();
  expect(written).toEqual(['a\nb\nc\n', 'd\n']);
});

test('a turn with very many lines does not gather them all', async () => {
  written.length = 0;
  const line = `${'x'.repeat(999)}\n`;
  for (let count = 0; count < 1_000; count++) output.write(line);
  expect(written.length).toBeGreaterThan(5);
  await setImmediate();
  expect(written.join('')).toBe(line.repeat(1_000));
});

test('what is left can be written at once, and only once', async () => {
  written.length = 0;
  output.write('last\n');
  output.flushSync();
  expect(written).toEqual(['last\n']);
  output.flushSync();
  await setImmediate();
  expect(written).toEqual(['last\n']);
});
