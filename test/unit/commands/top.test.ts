import { expect, it } from 'vitest';
import { Latest } from '../../../src/commands/top.ts';
import { rank } from '../../../src/observe/usage/talkers.ts';
import { CommandError } from '../../../src/process/failure.ts';

it('rankings stay while the gateway does not answer, and are unknown after two periods', async () => {
  let nowMs = 0;
  let isDown = false;
  const top = { ...rank([], '10s'), asOf: '', othersUnknownSince: null };
  const read = async () => {
    if (isDown) throw new CommandError('no answer');
    return top;
  };
  const latest = new Latest(top, read, () => nowMs);
  const after = async (ms: number) => {
    nowMs += ms;
    await latest.refresh();
    return latest.problem;
  };
  expect(await after(5_000)).toBe('');
  isDown = true;
  expect(await after(2_000)).toBe('');
  expect(await after(1_000)).toBe('unknown since 1970-01-01T00:00:05.000Z: no answer');
  expect(latest.top).toBe(top);
  isDown = false;
  expect(await after(1_000)).toBe('');
});
