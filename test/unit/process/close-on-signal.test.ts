import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { programOf } from '../../fixtures/program.ts';

/** A program that reads, starts and runs, and writes what it does. Each step ends when a line comes in. */
const PROGRAM = await programOf(`
  import { createInterface } from 'node:readline';
  import { closeOnSignal } from './src/process/close-on-signal.ts';
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const step = async (name) => {
    console.log(name);
    return (await lines.next()).value;
  };
  for (const event of ['SIGTERM', 'SIGINT', 'SIGHUP', 'disconnect']) process.on(event, () => console.log(event));
  const closed = (how) => async () => console.log(how);
  async function startsRunning() {
    if ((await step('starting')) === 'fail') throw new Error('it cannot start');
    return { close: closed('closed'), drain: closed('drained') };
  }
  const closing = closeOnSignal();
  await step('reading');
  await closing(startsRunning());
  await step('running');`);

async function program() {
  const args = ['--input-type=module', '--eval', PROGRAM];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe', 'ipc'] });
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new Error('the program has no pipes');
  const written = { stdout: '', stderr: '' };
  stdout.on('data', (chunk) => {
    written.stdout += chunk;
  });
  stderr.on('data', (chunk) => {
    written.stderr += chunk;
  });
  const ended = Promise.all([once(child, 'exit'), once(stdout, 'close'), once(stderr, 'close')]);
  const until = (line: string) => expect.poll(() => written.stdout).toContain(`${line}\n`);
  await until('reading');
  return {
    child,
    written,
    until,
    async reach(step: 'starting' | 'running') {
      stdin.write('\n');
      await until(step);
    },
    goOn: (line = '') => stdin.write(`${line}\n`),
    /** The exit code, or the signal that ended it. */
    async end() {
      const [[code, signal]] = await ended;
      return code ?? signal;
    },
  };
}

it('a signal ends a process at once that has nothing to close', async () => {
  const { child, written, end } = await program();
  child.kill('SIGTERM');
  expect(await end()).toBe(0);
  expect(written.stdout).toBe('reading\nSIGTERM\n');
});

it.each(['SIGTERM', 'SIGINT', 'SIGHUP', 'disconnect'] as const)(
  '%s closes what starts, as soon as it has started',
  async (event) => {
    const { child, written, until, reach, goOn, end } = await program();
    await reach('starting');
    if (event === 'disconnect') child.disconnect();
    else child.kill(event);
    await until(event);
    expect(written.stdout).toBe(`reading\nstarting\n${event}\n`);
    goOn();
    expect(await end()).toBe(0);
    expect(written.stdout).toContain('closed\n');
    expect(written.stdout).not.toContain('drained\n');
  },
);

it('a second signal ends it at once, also while it starts', async () => {
  const { child, written, until, reach, end } = await program();
  await reach('starting');
  child.kill('SIGTERM');
  await until('SIGTERM');
  child.kill('SIGTERM');
  expect(await end()).toBe(1);
  expect(written.stdout).not.toContain('closed\n');
});

it('SIGTERM drains what runs', async () => {
  const { child, written, reach, end } = await program();
  await reach('starting');
  await reach('running');
  child.kill('SIGTERM');
  expect(await end()).toBe(0);
  expect(written.stdout).toContain('drained\n');
});

it('a start that fails after a signal ends the process with its error', async () => {
  const { child, written, until, reach, goOn, end } = await program();
  await reach('starting');
  child.kill('SIGTERM');
  await until('SIGTERM');
  goOn('fail');
  expect([await end(), written.stderr]).toEqual([1, expect.stringContaining('it cannot start')]);
});
