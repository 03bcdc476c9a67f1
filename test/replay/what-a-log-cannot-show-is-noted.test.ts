import { expect, it } from 'vitest';
import { type LoggedRequest, logText, writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

/** A request each second, from this second on. */
function requests(fromSecond: number, more: Readonly<Record<string, unknown>> = {}): LoggedRequest[] {
  return Array.from({ length: 60 }, (_, index) => ({ atMs: (fromSecond + index) * 1000 + 0.5, more }));
}

async function notesOf(...logs: readonly (readonly LoggedRequest[])[]): Promise<string> {
  const { limits } = await writeFiles({ limits: 'defaults: { account-read: 5 }\n' });
  const files = await writeFiles(
    Object.fromEntries(logs.map((log, index) => [`${index}.log`, logText(log)])),
  );
  const { code, stdout, stderr } = await runReplayCommand(
    ...Object.values(files),
    '--limits',
    limits,
    '--json',
  );
  expect(code, stderr).toBe(0);
  const { notes } = JSON.parse(stdout) as { notes: readonly string[] };
  return notes.join('\n');
}

const TWICE = /occur twice/;
const UNCOUNTED = /served uncounted/;
const CLOCKS = /own clock/;

it('a file that is given twice is noted, and so is a copy', async () => {
  const notes = await notesOf(requests(0), requests(0));
  expect(notes).toMatch(/60 requests occur twice/);
});

it('requests that were served uncounted are noted with their number', async () => {
  const notes = await notesOf([...requests(0), ...requests(60, { outcome: 'uncounted' })]);
  expect(notes).toMatch(/60 requests were served uncounted/);
  expect(notes).not.toMatch(TWICE);
});

it('files of the same time are noted, because the clocks of their gateways may differ', async () => {
  const other = requests(0).map(({ atMs, more = {} }) => ({ atMs: atMs + 7, more }));
  const notes = await notesOf(requests(0), other);
  expect(notes).toMatch(CLOCKS);
  expect(notes).not.toMatch(TWICE);
});

it('the rotated files of one gateway get none of these notes', async () => {
  const notes = await notesOf(requests(60), requests(0));
  for (const note of [TWICE, UNCOUNTED, CLOCKS]) expect(notes).not.toMatch(note);
});
