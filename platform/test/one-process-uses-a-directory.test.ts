import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ACCT_1, createClient } from './fixtures/client.ts';
import { QUICK_TO_OPEN } from './fixtures/databases.ts';

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));

let parent: string;
let directory: string;
let running: ChildProcess[] = [];
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'weir-directory-'));
  directory = join(parent, 'data');
});
afterEach(async () => {
  await Promise.all(running.map((child) => end(child, 'SIGKILL')));
  running = [];
  rmSync(parent, { recursive: true });
});

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** The first of what a process of the platform does: it listens at a URL, or ends with a message. */
async function start(): Promise<{ child: ChildProcess; url: string; message: string }> {
  const child = fork(PROGRAM, ['--port', '0', '--data', directory], {
    silent: true,
    execArgv: QUICK_TO_OPEN,
  });
  running.push(child);
  let message = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    message += chunk;
  });
  const url = await Promise.race([
    once(child, 'message').then(([started]) => (started as { url: string }).url),
    once(child, 'close').then(() => ''),
  ]);
  return { child, url, message };
}

/** Creates so many payees, one after the other. @returns their ids */
async function write(url: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const created = await createClient(url, ACCT_1).send('POST', '/v3/payments/payees', {
      name: `Payee ${i}`,
    });
    ids.push(created.body.id);
  }
  return ids;
}

async function payees(url: string): Promise<string[]> {
  return (await createClient(url, ACCT_1).walk('/v3/payments/payees?page[size]=100')).map(({ id }) => id);
}

test('a second process is refused while the first runs or is suspended, and starts once it was killed; no write is lost', async () => {
  const first = await start();
  const written = await write(first.url, 5);
  const second = await start();
  expect(second.message).toMatch(
    new RegExp(
      `^The directory ${directory} is in use by process ${first.child.pid} on .+: stop that process, or choose another directory\\.\n$`,
    ),
  );
  expect(second.child.exitCode).toBe(1);
  first.child.kill('SIGSTOP');
  const third = await start();
  expect(third.message).toBe(
    `The directory ${directory} is in use by another process: stop that process, or choose another directory.\n`,
  );
  first.child.kill('SIGCONT');
  written.push(...(await write(first.url, 5)));
  await end(first.child, 'SIGKILL');
  const fourth = await start();
  expect(fourth.message).toBe('');
  expect(await payees(fourth.url)).toEqual(expect.arrayContaining(written));
});

test('of four processes that start at once, one serves', async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => start()));
  expect(all.filter(({ url }) => url !== '').length).toBe(1);
  for (const { url, message } of all)
    if (url === '') expect(message).toMatch(/^The directory \S+ is in use by [^\n]+\n$/);
});

test('a database that is damaged is reported in one sentence', async () => {
  mkdirSync(directory);
  writeFileSync(join(directory, 'PG_VERSION'), '17\n');
  const { child, message } = await start();
  expect(child.exitCode).toBe(1);
  expect(message).toMatch(
    new RegExp(
      `^The directory ${directory} cannot be used: its disk may be full, or its database damaged \\(.+\\)\\.\n$`,
    ),
  );
});
