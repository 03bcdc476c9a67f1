import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import type { ReplayResult } from '../../src/replay/run-replay.ts';
import { writeFiles } from './log-lines.ts';
import { runReplayCommand } from './replay-command.ts';

const LOG = fileURLToPath(new URL('../../src/demo/generated-access.log.gz', import.meta.url));

it('its first line says that it is generated', () => {
  const [first = ''] = gunzipSync(readFileSync(LOG)).toString().split('\n', 1);
  expect(JSON.parse(first)).toMatchObject({ msg: expect.stringContaining('generated') });
});

it('a suggestion for it can be replayed at once, and refuses no more than was asked', async () => {
  const { code, stdout, stderr } = await runReplayCommand(LOG, '--suggest', '0.1%');
  expect(code, stderr).toBe(0);
  const { limits } = await writeFiles({ limits: stdout });
  const replayed = await runReplayCommand(LOG, '--limits', limits, '--json', '--max-refused', '0.1%');
  expect(replayed.code, replayed.stderr).toBe(0);
  const result = JSON.parse(replayed.stdout) as ReplayResult;
  expect(result).toMatchObject({ requests: 8_000, unreadable: 0 });
  expect(result.refused.before).toBeGreaterThan(result.refused.after);
});

it("the limits of the page about changing limits give that page's numbers", async () => {
  const page = readFileSync(new URL('../../docs/changing-limits.md', import.meta.url), 'utf8');
  const { limits } = await writeFiles({ limits: 'defaults: { account-read: 20, account-write: 10 }\n' });
  const { stdout } = await runReplayCommand(LOG, '--limits', limits, '--rows', '2');
  expect(page).toContain(stdout.slice(0, stdout.indexOf('\n\nand ')));
  const shares = [];
  for (const retries of ['none', 'drop', 'after']) {
    const replayed = await runReplayCommand(LOG, '--limits', limits, '--retries', retries);
    shares.push(`\`${retries}\` ${/refused after +\d+ \(([\d.]+ %)\)/.exec(replayed.stdout)?.[1]}`);
  }
  const [none = '', drop = '', after = ''] = shares;
  expect(page).toContain(`${none.replace(' ', ' refuses ')}, ${drop} and ${after}`);
});
