import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import { openTerminalLog } from '../../../src/commands/demo/terminal-log.ts';
import type { Log } from '../../../src/observe/log/log.ts';

async function shown(...lines: readonly object[]): Promise<string> {
  let text = '';
  const write = (chunk: string) => {
    text += stripVTControlCharacters(chunk);
  };
  const { log, lines: output } = (await openTerminalLog('info', { write })) as Log;
  log.info({ store: 'memory' }, 'weir is listening');
  for (const line of lines) output.write(`${JSON.stringify({ level: 30, time: Date.now(), ...line })}\n`);
  return text;
}

const REQUEST = {
  requestId: 'r-1',
  method: 'GET',
  path: '/v3/payments/payees',
  account: 'acct_1',
  cost: 1,
  outcome: 'admitted',
  status: 200,
  totalMs: 3.2,
  msg: 'request',
};

it('on a terminal each entry of the log is a short line of text', async () => {
  const refused = { outcome: 'denied', status: 429, reason: 'RateLimitExceeded', bucket: 'account-read' };
  const text = await shown(REQUEST, { ...REQUEST, ...refused }, { ...REQUEST, requestId: 'demo-traffic-7' });
  expect(text.replaceAll(/\d\d:\d\d:\d\d/g, 'TIME')).toBe(
    '[TIME] INFO: weir is listening {"store":"memory"}\n' +
      '[TIME] INFO: GET /v3/payments/payees 200, 1 point of acct_1 (3 ms)\n' +
      '[TIME] INFO: GET /v3/payments/payees 429, RateLimitExceeded, account-read, acct_1 (3 ms)\n',
  );
});

it('no value ends the line, moves the cursor or hides', async () => {
  const hostile = 'a\u009b31m\u007f\u202e\u200b\u2028\nForged\r';
  const nested = {
    problem: hostile,
    [hostile]: [{ [hostile]: hostile }],
    err: { message: hostile, stack: hostile },
  };
  const text = await shown({ ...REQUEST, account: hostile, path: hostile }, { ...nested, msg: hostile });
  expect(text).not.toMatch(/[^\n\P{Cc}]|[\p{Cf}\p{Zl}]/u);
  // A stack has lines of its own, which are indented.
  expect(text).not.toMatch(/^Forged/m);
});

it('no password of a URL is shown', async () => {
  const text = await shown({ problem: 'redis://user:secret@127.0.0.1:6379 refused', msg: 'down' });
  expect(text).toContain('127.0.0.1:6379');
  expect(text).not.toContain('secret');
});
