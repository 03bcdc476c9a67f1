import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { TestGateway } from '../../test/fixtures/gateway.ts';
import { startRawServer } from '../../test/fixtures/raw-server.ts';
import { runProgramHere } from '../../test/fixtures/run-here.ts';
import { ACCT_2 } from './fixtures/client.ts';
import { quickest } from './fixtures/databases.ts';
import { startGatewayInFront } from './fixtures/gateway-in-front.ts';
import { usePlatform } from './fixtures/platform.ts';

const PROGRAM = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

const run = (args: readonly string[], env?: NodeJS.ProcessEnv) => runProgramHere(MAIN, args, env);

const { version: VERSION } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { readonly version: string };

const HOSTILE = 'h\u001b[2J\u009b31m\u202e\u200b\u2028\r\nForged: line\n\u0085';

/** What a terminal would obey or hide. */
const UNSAFE = /[^\n\P{Cc}]|[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const caller = (url: string) => ['--url', url, '--token', 'person'];

describe('weir-platform', () => {
  const platform = usePlatform(quickest);
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
      [PROGRAM, 'listen', ...caller(gateway.url), '--account', 'acct_2', '--events', 'Invoice.*'],
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
    const triggered = await run([
      ...['trigger', 'Invoice.Paid', ...caller(gateway.url), '--account', 'acct_2'],
    ]);
    expect([triggered.code, JSON.parse(triggered.stdout).type]).toEqual([0, 'Invoice.Paid']);
    await until('✓ Invoice.Paid\n{\n  "id": "evt_');
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
    expect(await platform.as(ACCT_2).walk('/v3/platform/webhook-subscriptions')).toEqual([]);
  });

  test('what cannot be done is one sentence', async () => {
    const unknown = await run(['trigger', 'Invoice.Eaten', ...caller(gateway.url)]);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      'The request was refused: type "Invoice.Eaten" is not a published event type\n',
    ]);
    const stranger = await run(['trigger', 'Invoice.Paid', '--url', gateway.url], {
      WEIR_TOKEN: 'unknown',
    });
    expect([stranger.code, stranger.stderr]).toEqual([
      1,
      'The request was refused: The access token is not valid.\n',
    ]);
    const nobody = await run(['trigger', 'Invoice.Paid', '--url', 'http://127.0.0.1:1']);
    expect(nobody.code).toBe(1);
    expect(nobody.stderr).toMatch(
      /^No gateway answers at http:\/\/127\.0\.0\.1:1 \(.*\): start one with .*\n$/,
    );
  });

  test.each([
    ['502 with a page', 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>', '502'],
    ['200 with a page', 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>', '200'],
    ['200 with a list', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]', '200'],
    ['401 with null', 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nnull', '401'],
    ['200 that breaks off', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}', '200'],
  ])('another server than the gateway, which answers a %s, is one sentence', async (_, answer, status) => {
    const other = await startRawServer((socket) => {
      socket.once('data', () => socket.end(answer));
    });
    onTestFinished(() => other.close());
    const { code, stderr } = await run(['trigger', 'Invoice.Paid', '--url', other.url]);
    const sentence = `${other.url} answered ${status} without JSON: is it the gateway? Name another with --url.\n`;
    expect([code, stderr]).toEqual([1, sentence]);
  });

  test('--help and --version work', async () => {
    for (const command of [[], ['trigger'], ['listen']]) {
      const help = await run([...command, '--help']);
      expect([help.code, help.stderr]).toEqual([0, '']);
      expect(help.stdout).toContain(`Usage: ${['weir-platform', ...command].join(' ')}`);
      expect(await run([...command, '--version'])).toMatchObject({ code: 0, stdout: `${VERSION}\n` });
    }
  });

  test.each([
    ['WEIR_LOG_LEVEL', 'LOUD', 'WEIR_LOG_LEVEL LOUD is not a level: give one of fatal, error, '],
    ['WEIR_BASE_URL', 'api.example.com', 'WEIR_BASE_URL api.example.com is not an http or https URL'],
    ['WEIR_PLATFORM_SEED', 'yes', 'WEIR_PLATFORM_SEED is yes: give true or false'],
    ['WEIR_PLATFORM_TRIGGERS', 'TRUE', 'WEIR_PLATFORM_TRIGGERS is TRUE: give true or false'],
    ['DATABASE_URL', 'secret', 'DATABASE_URL is not a URL: give one such as postgres://'],
    ['DATABASE_URL', 'secret:5432/weir', 'DATABASE_URL is not a URL: give one such as postgres://'],
  ])('a value of %s that cannot be used is one sentence', async (variable, value, sentence) => {
    const { code, stderr } = await run(['--port', '0'], { [variable]: value });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]+\n$/)]);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain('secret');
  });

  test.each([
    [['--data', ''], '--data is empty'],
    [
      ['trigger', 'Invoice.Paid', '--url', 'localhost:8080'],
      '--url localhost:8080 is not an http or https URL',
    ],
    [['trigger', 'Invoice.Paid', '--url', 'http://me:secret@127.0.0.1:1'], '--url must have no user name'],
    [
      ['trigger', 'Invoice.Paid', '--token', 'eyJ\u2026'],
      '--token eyJ\u2026 has a character that cannot be sent',
    ],
    [['listen', '--account', 'acct\n1'], '--account acct\\u000a1 has a character that cannot be sent'],
  ])('options %s are refused by name, before anything is called', async (args, sentence) => {
    const { code, stderr } = await run(args);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]+\n$/)]);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain('secret');
  });

  test('a gateway below a path of its host is called there', async () => {
    const paths: unknown[] = [];
    const other = await startRawServer((socket) => {
      socket.once('data', (head) => {
        paths.push(head.toString('latin1').split(' ')[1]);
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
      });
    });
    onTestFinished(() => other.close());
    for (const path of ['', '/', '/payments', '/payments/'])
      await run(['trigger', 'Invoice.Paid', '--url', new URL(path, other.url).href]);
    const trigger = '/v3/platform/event-triggers';
    expect(paths).toEqual([trigger, trigger, `/payments${trigger}`, `/payments${trigger}`]);
  });

  test('a database that cannot be opened is reported in one sentence', async () => {
    const refused = await run(['--port', '0'], { DATABASE_URL: 'postgres://127.0.0.1:1/payments' });
    const occupied = await run(['--port', '0', '--data', MAIN]);
    const opened = 'The database cannot be opened: ';
    expect(refused).toMatchObject({ code: 1, stderr: `${opened}connect ECONNREFUSED 127.0.0.1:1.\n` });
    expect(occupied).toMatchObject({ code: 1, stderr: expect.stringMatching(/^[^\n]+\n$/) });
    expect(occupied.stderr).toBe(`The directory ${MAIN} cannot be used: it is a file.\n`);
  });

  test.each([
    ['--port', ['--port', HOSTILE]],
    ['an unknown option', [`--${HOSTILE}`]],
    ['a URL', ['trigger', 'Invoice.Paid', '--url', HOSTILE]],
    ['a host', ['trigger', 'Invoice.Paid', '--url', 'http://user:secret@127.0.0.1:1']],
  ])('%s cannot move the cursor, begin a line or show a password', async (_, args) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).not.toMatch(UNSAFE);
    expect(stderr).not.toMatch(/^Forged/m);
    expect(stderr).not.toContain('secret');
  });
});
