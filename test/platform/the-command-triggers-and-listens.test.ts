import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { runWeir } from '../fixtures/weir-process.ts';
import { ACCT_1 } from './fixtures/client.ts';
import { inMemory } from './fixtures/databases.ts';
import { usePlatform } from './fixtures/platform.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

describe('weir platform', () => {
  const platform = usePlatform(inMemory);
  let listener: ChildProcess | undefined;
  afterEach(() => listener?.kill('SIGKILL'));

  test('listen prints what trigger makes happen, and takes its subscription back when it ends', async () => {
    const child = spawn(
      process.execPath,
      [WEIR, 'platform', 'listen', '--url', platform.url, '--events', 'Invoice.*'],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    listener = child;
    const lines = createInterface({ input: child.stdout });
    let output = '';
    lines.on('line', (line) => {
      output += `${line}\n`;
    });
    const until = async (text: string) => {
      while (!output.includes(text)) await once(lines, 'line');
    };
    await until('listening on http://127.0.0.1:');
    const triggered = await runWeir(['platform', 'trigger', 'Invoice.Paid', '--url', platform.url]);
    expect([triggered.code, JSON.parse(triggered.stdout).type]).toEqual([0, 'Invoice.Paid']);
    await until('✓ Invoice.Paid');
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
    expect(await platform.as(ACCT_1).walk('/v3/platform/webhook-subscriptions')).toEqual([]);
  });

  test('what cannot be done is one sentence', async () => {
    const unknown = await runWeir(['platform', 'trigger', 'Invoice.Eaten', '--url', platform.url]);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      'The platform refused: type "Invoice.Eaten" is not a published event type\n',
    ]);
    const nobody = await runWeir(['platform', 'trigger', 'Invoice.Paid', '--url', 'http://127.0.0.1:1']);
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toMatch(
      /^No platform answers at http:\/\/127\.0\.0\.1:1 \(.*\): start one with .*\n$/,
    );
  });
});
