import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import type { LogEntry } from '../../src/replay/input/entry.ts';
import { MOST_HELD, readLog } from '../../src/replay/input/read-log.ts';

const operation = {};

it('after a line of the far future, entries are still in order, and a bounded number of them is held', async () => {
  const count = MOST_HELD + 10_000;
  const times: number[] = [];
  let beforeLast = 0;
  const readLine = (line: string) => {
    const atUs = Number(line);
    if (atUs === count) beforeLast = times.length;

    return { atUs, loggedUs: atUs, operation, cost: 1, account: 'acct_1', principal: 'svc_1' } as LogEntry;
  };
  function* chunks() {
    yield Buffer.from(`${Number.MAX_SAFE_INTEGER}\n`);
    for (let atUs = 1; atUs <= count; atUs += 1000) {
      const lines = Array.from({ length: Math.min(1000, count - atUs + 1) }, (_, index) => atUs + index);
      yield Buffer.from(`${lines.join('\n')}\n`);
    }
  }
  const open = () => Readable.from(chunks(), { objectMode: false });
  await readLog(
    {
      sources: [{ name: 'log', bytes: undefined, open }],
      readLine,
      onProgress: () => undefined,
      signal: new AbortController().signal,
    },
    ({ atUs }) => times.push(atUs),
  );
  expect(times).toHaveLength(count + 1);
  expect(times.every((time, index) => time >= (times[index - 1] ?? 0))).toBe(true);
  expect(count - beforeLast).toBeLessThanOrEqual(MOST_HELD);
});
