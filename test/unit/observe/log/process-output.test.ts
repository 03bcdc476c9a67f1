import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { programOf } from '../../../fixtures/program.ts';

const PREPARATION = await programOf(`
  import { openLog } from './src/observe/log/log.ts';
  import { logProcessOutput } from './src/observe/log/process-output.ts';
  logProcessOutput(openLog('info').log);`);

/** Runs lines of code in a process of its own, whose output goes to the log. */
function outputOf(code: string): { stdout: string; stderr: string; status: number | null } {
  const args = ['--input-type=module', '--eval', PREPARATION + code];
  return spawnSync(process.execPath, args, { encoding: 'utf8' });
}

test.each([
  ['what a library prints', `console.error('a %s', 'b\\nc'); console.log({ a: 1 });`, 2],
  ["Node's warnings", `process.emitWarning('careful')`, 1],
  ['an error that nothing catches', `setTimeout(() => { throw new Error('redis://u:hidden@h') })`, 1],
  ['a promise that nothing awaits', `Promise.reject(new Error('redis://u:hidden@h'))`, 1],
])('%s leaves as JSON lines', (_what, code, count) => {
  const { stdout, stderr } = outputOf(code);
  expect(stderr).toBe('');
  const lines = stdout.trimEnd().split('\n');
  expect(lines.map((line) => typeof JSON.parse(line))).toEqual(Array(count).fill('object'));
  expect(stdout).not.toContain('hidden');
});

test('an error that nothing catches ends the process with 1', () => {
  expect(outputOf('throw new Error()').status).toBe(1);
});

test('a text that repeats is written once a minute', () => {
  expect(outputOf(`for (let n = 0; n < 50; n++) console.warn('again')`).stdout.split('\n')).toHaveLength(2);
});
