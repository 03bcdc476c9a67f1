import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, expect, it } from 'vitest';
import { freePort } from '../fixtures/free-port.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { runWeir } from '../fixtures/weir-process.ts';

const WEIR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const run = promisify(execFile);

let demo: ChildProcess | undefined;
let upstreamUrl = '';
afterEach(async () => {
  if (demo === undefined || demo.exitCode !== null || demo.signalCode !== null) return;
  const ended = once(demo, 'exit');
  demo.kill('SIGTERM');
  await ended;
});

async function startDemo(): Promise<string> {
  upstreamUrl = `http://127.0.0.1:${await freePort()}`;
  const env = {
    PATH: process.env.PATH,
    WEIR_PORT: '0',
    WEIR_ADMIN_PORT: '0',
    WEIR_UPSTREAM_URL: upstreamUrl,
  };
  const child = spawn(process.execPath, [WEIR, 'demo'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  demo = child;
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await expect.poll(() => output, { timeout: 60_000 }).toContain('Ctrl-C');
  return output;
}

it('prints three curl lines that work, the last of which shows a 429', async () => {
  const lines = curlLines(await startDemo()).slice(0, 3);
  const answers: string[] = [];
  for (const line of lines) answers.push((await run('sh', ['-c', `${line} -s`])).stdout);
  const statuses = answers.map((answer) =>
    [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
  );
  expect(statuses).toEqual([['200'], [expect.stringMatching(/^20[02]$/)], ['201', '429']]);
  for (const answer of answers) expect(answer).toMatch(/^RateLimit: "account-(read|write)";r=\d+;t=1/m);
}, 90_000);

it('shows an API key from its issue to the 401 that follows its revocation', async () => {
  const [issue = '', call = '', revoke = ''] = curlLines(await startDemo()).slice(3);
  const key = JSON.parse((await run('sh', ['-c', issue])).stdout);
  const status = async (line: string) => {
    const written = line.replace('<key>', key.key).replace('<id>', key.id);
    return /^HTTP\/1\.1 (\d+)/.exec((await run('sh', ['-c', `${written} -s`])).stdout)?.[1];
  };
  expect([await status(call), await status(revoke), await status(call)]).toEqual(['200', '200', '401']);
}, 90_000);

function curlLines(output: string): string[] {
  return output.split('\n').filter((line) => line.trim().startsWith('curl '));
}

it('the platform ends with the demo, even when the demo is killed', async () => {
  await startDemo();
  const platformUrl = upstreamUrl;
  expect((await fetch(`${platformUrl}/v3/platform/webhook-event-types`)).status).toBeLessThan(500);
  demo?.kill('SIGKILL');
  await expect
    .poll(
      () =>
        fetch(platformUrl).then(
          () => 'answers',
          () => 'gone',
        ),
      { timeout: 60_000 },
    )
    .toBe('gone');
}, 90_000);

it('a busy port is reported in plain text, and no process is left running', async () => {
  const squatter = await startUpstream();
  const { code, stderr } = await runWeir(['demo'], {
    WEIR_PORT: '0',
    WEIR_ADMIN_PORT: '0',
    WEIR_UPSTREAM_URL: squatter.url,
  });
  expect(code).toBe(1);
  expect(stderr).toContain(`Port ${new URL(squatter.url).port} on 127.0.0.1 is in use`);
  expect(stderr).not.toContain('    at ');
  await squatter.close();
}, 90_000);
