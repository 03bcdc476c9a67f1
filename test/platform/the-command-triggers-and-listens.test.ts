import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../fixtures/gateway.ts';
import { runWeir } from '../fixtures/weir-process.ts';
import { ACCT_2 } from './fixtures/client.ts';
import { inMemory } from './fixtures/databases.ts';
import { startGatewayInFront } from './fixtures/gateway-in-front.ts';
import { usePlatform } from './fixtures/platform.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const caller = (url: string) => ['--url', url, '--token', 'person'];

describe('weir platform', () => {
  const platform = usePlatform(inMemory);
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGatewayInFront(platform.url);
  });
  afterAll(() => gateway?.close());
  let listener: ChildProcess | undefined;
  afterEach(() => listener?.kill('SIGKILL'));

  test('listen prints triggered events, and deletes its subscription when it ends', async () => {
    const child = spawn(
      process.execPath,
      [WEIR, 'platform', 'listen', ...caller(gateway.url), '--account', 'acct_2', '--events', 'Invoice.*'],
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
    const triggered = await runWeir([
      ...['platform', 'trigger', 'Invoice.Paid', ...caller(gateway.url), '--account', 'acct_2'],
    ]);
    expect([triggered.code, JSON.parse(triggered.stdout).type]).toEqual([0, 'Invoice.Paid']);
    await until('✓ Invoice.Paid');
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
    expect(await platform.as(ACCT_2).walk('/v3/platform/webhook-subscriptions')).toEqual([]);
  });

  test('what cannot be done is one sentence', async () => {
    const unknown = await runWeir(['platform', 'trigger', 'Invoice.Eaten', ...caller(gateway.url)]);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      'The request was refused: type "Invoice.Eaten" is not a published event type\n',
    ]);
    const stranger = await runWeir(['platform', 'trigger', 'Invoice.Paid', '--url', gateway.url], {
      WEIR_TOKEN: 'unknown',
    });
    expect([stranger.code, stranger.stderr]).toEqual([
      1,
      'The request was refused: The access token is not valid.\n',
    ]);
    const nobody = await runWeir(['platform', 'trigger', 'Invoice.Paid', '--url', 'http://127.0.0.1:1']);
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toMatch(
      /^No gateway answers at http:\/\/127\.0\.0\.1:1 \(.*\): start one with .*\n$/,
    );
  });
});
