import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { parseLimits } from '../../src/config/files/limits/parse-limits.ts';
import { lineReader } from '../../src/replay/input/formats.ts';
import { readLog } from '../../src/replay/input/read-log.ts';
import { Replay } from '../../src/replay/replay.ts';
import { heapGrowthOf } from '../fixtures/heap.ts';

const CHUNK_BYTES = 1_000_000;
const CHUNKS = 50;

/** Nothing else in this process grows by as much. */
const MOST_BYTES = (CHUNKS * CHUNK_BYTES) / 5;

const LIMITS = parseLimits('limits: { each: { per: principal, points: 9, window: 1m } }', 'limits.yaml');

/** One line of each chunk is of an Account that no other line has. */
function* chunks(): Generator<Buffer> {
  const rest = `[20/Nov/2026:13:00:00 +0100] "GET /v3/things HTTP/1.1" 200 512 "-" "${'x'.repeat(CHUNK_BYTES)}"`;
  for (let number = 0; number < CHUNKS; number++)
    yield Buffer.from(`203.0.113.9 - account_0123456789_${number} ${rest}\n`);
}

it('the ids of a log in text keep none of its chunks in memory', async () => {
  const readLine = lineReader({
    format: 'combined',
    mapping: {},
    accountPattern: undefined,
    finder: undefined,
  });
  if (typeof readLine === 'string') throw new Error(readLine);
  const replay = new Replay(LIMITS, 'none', false);
  const open = () => Readable.from(chunks(), { objectMode: false });
  const { signal } = new AbortController();
  const sources = [{ name: 'log', bytes: undefined, open }];
  const grownBytes = await heapGrowthOf(() =>
    readLog({ sources, readLine, onProgress: () => undefined, signal }, (entry) => replay.take(entry)),
  );
  expect(replay.requests).toBe(CHUNKS);
  expect(grownBytes).toBeLessThan(MOST_BYTES);
});
