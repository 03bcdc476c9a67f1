import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { startWeir } from '../fixtures/weir-process.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Each command has more to write than a pipe holds, so that one that does not notice could not end. */
const OPERATIONS = 2_500;
const ACCOUNTS = 3_000;
const DAYS = 5_000;

let settings = '';
let log = '';
let adminUrl = '';

beforeAll(async () => {
  const list = Array.from({ length: OPERATIONS }, (_, n) => ({
    method: 'GET',
    path: `/path/of/operation/${n}`,
  }));
  settings = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { operations: { list, openapi: 'openapi.yaml' } },
  });
  log = join(await mkdtemp(join(tmpdir(), 'weir-log-')), 'access.log');
  const line = { msg: 'request', outcome: 'admitted', cost: 1, kind: 'read', principal: 'p' };
  const lines = Array.from({ length: ACCOUNTS }, (_, n) =>
    JSON.stringify({ ...line, time: 1_764_000_000_000 + n, account: `acct_${n}` }),
  );
  await writeFile(log, `${lines.join('\n')}\n`);
  await new Promise<void>((resolve) => adminPort.listen(0, '127.0.0.1', resolve));
  adminUrl = `http://127.0.0.1:${(adminPort.address() as AddressInfo).port}`;
});

afterAll(() => {
  adminPort.close();
});

/** As an admin port whose journal has many days. */
const adminPort = createServer((_request, response) => {
  const day = { day: '2026-11-20', operation: 'listThings', limit: 'account-read', points: 1, requests: 1 };
  const days = Array.from({ length: DAYS }, () => ({ ...day, refused: 0 }));
  const period = { from: '2026-01-01', to: '2027-01-01', asOf: '2026-11-20T12:00:00.000Z' };
  response.end(JSON.stringify({ scope: 'account', id: 'acct_1', ...period, limits: [], days }));
});

const COMMANDS: readonly [string, () => readonly string[]][] = [
  ['replay', () => ['replay', log, '--rows', '99999']],
  ['replay --json', () => ['replay', log, '--json']],
  ['replay --suggest', () => ['replay', log, '--suggest', '1%']],
  ['operations', () => ['operations', '-c', settings]],
  ['operations in JSON', () => ['operations', '-c', settings, '--format', 'json']],
  ['usage --csv', () => ['usage', 'acct_1', '--period', '2026', '--csv', '--url', adminUrl]],
];

function run(args: readonly string[], stdout: 'pipe' | number = 'pipe') {
  const limits = args[0] === 'replay' ? ['--limits', join(dirname(settings), 'limits.yaml')] : [];
  return spawn(process.execPath, [WEIR, ...args, ...limits], { stdio: ['ignore', stdout, 'pipe'] });
}

describe('a command whose reader has gone ends without a stack trace', () => {
  it.each(COMMANDS)('%s', async (_, args) => {
    const child = run(args());
    let stderr = '';
    child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    child.stdout?.once('data', () => child.stdout?.destroy());
    const [code] = await once(child, 'close');
    expect([code, stderr]).toEqual([141, '']);
  });

  it('one whose messages nobody reads keeps its exit code', async () => {
    const child = run(['check', '-c', 'none.yaml']);
    child.stderr?.destroy();
    const [code] = await once(child, 'close');
    expect(code).toBe(1);
  });

  it('one that cannot write reports it in a sentence', async () => {
    const full = await open('/dev/full', 'w');
    onTestFinished(() => full.close());
    const child = run(['replay', log, '--json'], full.fd);
    let stderr = '';
    child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    const [code] = await once(child, 'close');
    expect([code, stderr]).toEqual([1, 'Standard output cannot be written (ENOSPC).\n']);
  });
});

it('a gateway whose log nobody reads serves on, and ends as it should', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const gateway = await startWeir({ upstreamUrl: upstream.url });
  const { process: child, url } = gateway;
  child.stdout?.destroy();
  child.stderr?.destroy();
  const ended = once(child, 'exit');
  for (let count = 0; count < 3; count++) {
    const { status } = await fetch(`${url}/reports`, { headers: { Authorization: 'Bearer person' } });
    expect(status).toBe(200);
  }
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});
