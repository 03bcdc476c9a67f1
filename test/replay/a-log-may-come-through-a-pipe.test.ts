import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { LineCounts } from '../../src/replay/input/line-counts.ts';
import { LogFile } from '../../src/replay/input/log-file.ts';
import type { ReplayResult } from '../../src/replay/run-replay.ts';
import { type LoggedRequest, logText, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const LIMITS = 'windowSeconds: 1\ndefaults: { account-read: 5 }\n';

/** Eight requests at once. */
const BURST: readonly LoggedRequest[] = Array.from({ length: 8 }, (_, atMs) => ({ atMs }));

async function startReplay(...args: readonly string[]) {
  const { limits } = await writeFiles({ limits: LIMITS });
  const child = spawn(process.execPath, [WEIR, 'replay', '--json', '--limits', limits, ...args]);
  return { child, ended: resultOf(child) };
}

async function resultOf(child: ChildProcess): Promise<{ code: number; result: ReplayResult }> {
  if (child.stdout === null) throw new Error('the output of weir is not piped');
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code: code as number, result: JSON.parse(output) as ReplayResult };
}

it('standard input is read if no file is given, plain or gzip', async () => {
  const { child, ended } = await startReplay('--max-refused', '10%');
  child.stdin.end(gzipSync(logText(BURST)));
  const { code, result } = await ended;
  expect(result).toMatchObject({ requests: 8, refused: { after: 3 }, complete: true });
  expect(code).toBe(2);
});

it('a pipe may begin with a single byte of a gzip log', async () => {
  const bytes = gzipSync(logText(BURST));
  const counts = new LineCounts();
  const source = {
    name: '-',
    bytes: undefined,
    open: () => Readable.from([bytes.subarray(0, 1), bytes.subarray(1)]),
  };
  const lines: string[] = [];
  const file = new LogFile(
    source,
    (line) => {
      lines.push(line);
      return { problem: 'only kept' };
    },
    counts,
    () => {},
  );
  while (await file.readOn());
  expect(lines).toEqual(logText(BURST).trimEnd().split('\n'));
});

it('standard input is refused if it is named twice, because each reader would get a part of it', async () => {
  const { limits } = await writeFiles({ limits: LIMITS });
  const { code, stderr } = await runReplayCommand('-', '-', '--limits', limits);
  expect([code, stderr]).toEqual([1, '- is standard input, which can be read only once: name it once.\n']);
});

it('Ctrl-C prints the result so far, although the pipe is still open', async () => {
  const { child, ended } = await startReplay();
  // Far more than a pipe holds: once all of it is written, the command is reading.
  const lines = logText(Array.from({ length: 5_000 }, (_, second) => ({ atMs: second * 1_000 })));
  await new Promise<void>((resolve) => {
    child.stdin.write(lines, () => resolve());
  });
  child.kill('SIGINT');
  const { code, result } = await ended;
  expect(code).toBe(130);
  expect(result.complete).toBe(false);
  expect(result.requests).toBeGreaterThan(1_000);
  expect(result.notes[0]).toContain('The reading was interrupted');
});
