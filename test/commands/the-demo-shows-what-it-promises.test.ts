import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../fixtures/free-port.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { BARE, runWeir } from '../fixtures/weir-process.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const SOON = { timeout: 60_000, interval: 100 };
/** Two processes and a database start. */
const STARTED = { timeout: 110_000, interval: 100 };
const run = promisify(execFile);

interface Demo {
  readonly output: string;
  readonly url: string;
  readonly adminUrl: string;
  readonly platformUrl: string;
  readonly process: ChildProcess;
  readonly folder: string;
  /** All that it has written until now. */
  written(): string;
}

/** In a working folder of its own. */
async function startDemo(...options: string[]): Promise<Demo> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-demo-'));
  const platformUrl = `http://127.0.0.1:${await freePort()}`;
  const port = String(await freePort());
  const ports = ['--admin-port', '0', '--upstream', platformUrl];
  const child = spawn(process.execPath, [WEIR, 'demo', ...ports, ...options], {
    // A busy machine is no reason to refuse requests.
    env: { ...BARE, WEIR_PORT: port, WEIR_LISTEN_MAX_EVENT_LOOP_DELAY_MS: '0' },
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await vi.waitFor(() => expect(output).toContain('Ctrl-C'), STARTED);
  const [, adminUrl = ''] = /^Console: (http:\S+)\//m.exec(output) ?? [];
  return {
    output,
    url: `http://127.0.0.1:${port}`,
    adminUrl,
    platformUrl,
    process: child,
    folder,
    written: () => output,
  };
}

function curlLines({ output }: Demo): string[] {
  return output.split('\n').filter((line) => line.trim().startsWith('curl '));
}

/** Runs a curl line. Each of its answers must have a RateLimit header. */
async function statusesOf(line: string): Promise<readonly (string | undefined)[]> {
  const { stdout } = await run('sh', ['-c', `${line} -s`]);
  expect(stdout).toMatch(/^RateLimit: "account-(read|write)";r=\d+;t=1/m);
  return [...stdout.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
}

interface Talker {
  readonly id: string;
  readonly points: number;
}

/** The Accounts with points, and those with refusals, of the last ten minutes. */
async function accountsOf({ adminUrl }: Demo) {
  const response = await fetch(`${adminUrl}/usage/top?window=10m`);
  const { accounts } = (await response.json()) as {
    accounts: Record<'byPoints' | 'byRefused', readonly Talker[]>;
  };
  return accounts;
}

const idsOf = (talkers: readonly Talker[]) => talkers.map(({ id }) => id).sort();

describe('with its own traffic', () => {
  let demo: Demo;
  beforeAll(async () => {
    demo = await startDemo();
  });
  afterAll(async () => {
    const ended = once(demo.process, 'exit');
    demo.process.kill('SIGTERM');
    await ended;
  });

  it('prints three curl lines that work, and the last one shows a 429', async () => {
    const [read = '', write = '', sessions = ''] = curlLines(demo);
    expect(await statusesOf(read)).toEqual(['200']);
    expect(await statusesOf(write)).toEqual([expect.stringMatching(/^20[02]$/)]);
    // A busy machine may charge the two sessions more than a window apart.
    await expect.poll(() => statusesOf(sessions), { interval: 2_000 }).toEqual(['201', '429']);
  });

  it('shows an API key from its issue to the 401 that follows its revocation', async () => {
    const [issue = '', call = '', revoke = ''] = curlLines(demo).slice(3);
    const key = JSON.parse((await run('sh', ['-c', issue])).stdout);
    const status = async (line: string) => {
      const written = line.replace('<key>', key.key).replace('<id>', key.id);
      return /^HTTP\/1\.1 (\d+)/.exec((await run('sh', ['-c', `${written} -s`])).stdout)?.[1];
    };
    expect([await status(call), await status(revoke), await status(call)]).toEqual(['200', '200', '401']);
  });

  it('serves a page at the type of a problem, on its own port', async () => {
    const problem = (await (await fetch(demo.url)).json()) as {
      readonly type: string;
      readonly code: string;
    };
    expect(new URL(problem.type).origin).toBe(demo.url);
    const page = await fetch(problem.type);
    expect([page.status, await page.text()]).toEqual([
      200,
      expect.stringContaining(`<h1>${problem.code}</h1>`),
    ]);
  });

  it('writes the log to the file that it names, without its own traffic, and nothing more to the terminal', async () => {
    const [, file = ''] = /^Log: (\S+)/m.exec(demo.output) ?? [];
    await fetch(`${demo.url}/v3/payments/payees`, { headers: { 'X-Request-Id': 'mine-1' } });
    const log = () => readFile(join(demo.folder, file), 'utf8');
    await expect.poll(log, SOON).toContain('"mine-1"');
    expect(await log()).not.toContain('demo-traffic-');
    expect(demo.written()).toBe(demo.output);
  });

  it('several Accounts that the examples do not use spend points, and one is refused now and then', async () => {
    await expect
      .poll(async () => {
        const { byPoints, byRefused } = await accountsOf(demo);
        return [...idsOf(byPoints), ...idsOf(byRefused)].filter((id) => /^acct_[456]$/.test(id));
      }, SOON)
      .toEqual(['acct_4', 'acct_5', 'acct_6', 'acct_6']);
    expect(await (await fetch(`${demo.adminUrl}/metrics`)).text()).not.toMatch(
      /^weir_responses_total\{.*"5xx".*\} [1-9]/m,
    );
  });
});

it('with --no-traffic it counts only what its user sends, and the platform ends with it even when it is killed', async () => {
  const demo = await startDemo('--no-traffic');
  onTestFinished(() => void demo.process.kill('SIGKILL'));
  const [read = ''] = curlLines(demo);
  for (let sent = 0; sent < 2; sent += 1) await run('sh', ['-c', `${read} -s`]);
  // A request is counted when its response has ended, which may be after curl has.
  const spent = async () => (await accountsOf(demo)).byPoints.map(({ id, points }) => [id, points]);
  await expect.poll(spent, SOON).toEqual([['acct_1', 2]]);

  demo.process.kill('SIGKILL');
  await expect
    .poll(
      () =>
        fetch(demo.platformUrl).then(
          () => 'answers',
          () => 'gone',
        ),
      SOON,
    )
    .toBe('gone');
});

it('with --log it writes the log to the terminal, and no file', async () => {
  const demo = await startDemo('--no-traffic', '--log');
  onTestFinished(() => void demo.process.kill('SIGKILL'));
  expect(demo.output).toContain('The log follows.');
  await fetch(`${demo.url}/v3/payments/payees`, { headers: { 'X-Request-Id': 'mine-2' } });
  await expect.poll(demo.written, SOON).toContain('"requestId":"mine-2"');
  expect(await readdir(demo.folder)).toEqual([]);
});

it('every busy port is reported with its option before anything starts, and the command with free ports works', async () => {
  const [gateway, platform] = [await startUpstream(), await startUpstream()];
  onTestFinished(async () => {
    await Promise.all([gateway.close(), platform.close()]);
  });
  const port = new URL(gateway.url).port;
  const { code, stderr } = await runWeir(['demo', '--port', port, '--upstream', platform.url], {
    WEIR_ADMIN_PORT: '0',
    npm_lifecycle_event: 'test',
  });
  expect(code).toBe(1);
  expect(stderr).toContain(`Port ${port} on 127.0.0.1, for the gateway, is in use`);
  expect(stderr).toContain(`Port ${new URL(platform.url).port} on 127.0.0.1, for the platform, is in use`);
  expect(stderr).not.toContain('    at ');
  const [, options = ''] = /^With free ports: node \S+ demo (.*)$/m.exec(stderr) ?? [];
  expect(options).toMatch(/^--port \d+ --upstream http:\/\/127\.0\.0\.1:\d+$/);
  const started = { WEIR_ADMIN_PORT: '0', npm_lifecycle_event: 'start' };
  const again = await runWeir(['demo', '--port', port, '--upstream', platform.url], started);
  expect(again.stderr).toMatch(/^With free ports: npm start -- --port \d+ /m);
  const demo = await startDemo('--no-traffic', ...options.split(' '));
  demo.process.kill('SIGKILL');
});

it('an upstream with https is refused, because the platform speaks http', async () => {
  const { code, stderr } = await runWeir(['demo', '--upstream', 'https://127.0.0.1:9']);
  expect([code, stderr]).toEqual([
    1,
    'The platform of the demo does not speak TLS: name its address with http://.\n',
  ]);
});
