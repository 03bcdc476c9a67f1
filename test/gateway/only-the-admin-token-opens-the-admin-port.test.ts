import { mkdtemp, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { check } from '../../src/commands/check/check.ts';
import { usage } from '../../src/commands/usage.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { runHere } from '../fixtures/run-here.ts';

const TOKEN = 'correct-horse-battery';
const GUARDED = '/usage/accounts/acct_1';
const OPEN = ['/metrics', '/livez', '/readyz'];

let gateway: TestGateway | undefined;
afterEach(async () => {
  vi.unstubAllEnvs();
  await gateway?.close();
});

/** A gateway with these settings of its admin port. @returns the admin port's address on this machine */
async function start(admin: Readonly<Record<string, unknown>>): Promise<string> {
  gateway = await startGateway({ settings: { admin: { host: '127.0.0.1', port: 0, ...admin } } });
  return `http://127.0.0.1:${new URL(gateway.adminUrl).port}`;
}

/** The status of a GET with exactly these headers. */
function statusOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.once('error', reject).end();
  });
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

it('metrics and health need no token, everything else does', async () => {
  const url = await start({ host: '0.0.0.0', token: TOKEN });
  for (const path of OPEN) expect(await statusOf(url + path), path).toBe(200);
  expect(await statusOf(url + GUARDED, bearer(TOKEN))).toBe(200);
  for (const token of ['wrong', '', TOKEN.slice(1), `${TOKEN}x`, TOKEN.toUpperCase()]) {
    expect(await statusOf(url + GUARDED, bearer(token)), token).toBe(401);
  }
  expect(await statusOf(url + GUARDED)).toBe(401);
  expect(await statusOf(url + GUARDED, { Authorization: `Basic ${TOKEN}` })).toBe(401);
});

it('the token may be in a file, which is read again when it changes', async () => {
  const tokenFile = join(await mkdtemp(join(tmpdir(), 'weir-test-')), 'token');
  await writeFile(tokenFile, `${TOKEN}\n`);
  const url = await start({ tokenFile });
  expect(await statusOf(url + GUARDED, bearer(TOKEN))).toBe(200);
  await writeFile(tokenFile, 'another-long-token\n');
  expect(await statusOf(url + GUARDED, bearer(TOKEN))).toBe(401);
  expect(await statusOf(url + GUARDED, bearer('another-long-token'))).toBe(200);
  for (const text of ['\n', 'fifteen-letters', 'two words of a token']) {
    await writeFile(tokenFile, text);
    for (const token of ['', 'another-long-token', text.trim()]) {
      expect(await statusOf(url + GUARDED, bearer(token))).toBe(503);
    }
  }
  for (const path of OPEN) expect(await statusOf(url + path), path).toBe(200);
});

it('a token in a file is as long as one in the settings, from the start', async () => {
  const tokenFile = join(await mkdtemp(join(tmpdir(), 'weir-test-')), 'token');
  await writeFile(tokenFile, 'fifteen-letters\n');
  const config = await writeConfiguration({
    upstreamUrl: 'http://127.0.0.1:1',
    settings: { admin: { tokenFile } },
  });
  const problem = `${tokenFile}: must contain 16 characters or more, without spaces`;
  await expect(check({ config })).rejects.toThrow(problem);
  await expect(start({ tokenFile })).rejects.toThrow(problem);
});

it('without a token it is off, except on a loopback address and under a loopback name', async () => {
  const open = await start({ host: '0.0.0.0' });
  expect(await statusOf(open + GUARDED)).toBe(403);
  await gateway?.close();
  const local = await start({});
  expect(await statusOf(local + GUARDED)).toBe(200);
  for (const host of ['attacker.example', '127.0.0.1.attacker.example', 'localhost.attacker.example:80']) {
    expect(await statusOf(local + GUARDED, { Host: host }), host).toBe(403);
  }
});

it('no page of another site can read an answer, and no cache keeps one', async () => {
  const url = await start({});
  const response = await fetch(url + GUARDED, { headers: { Origin: 'https://attacker.example' } });
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
});

it('weir usage sends the token of WEIR_ADMIN_TOKEN', async () => {
  const url = await start({ token: TOKEN });
  expect((await runHere(() => usage('acct_1', { url }))).failure).toMatch(/401: Send the admin token/);
  vi.stubEnv('WEIR_ADMIN_TOKEN', `${TOKEN}-of-another-gateway`);
  expect((await runHere(() => usage('acct_1', { url }))).failure).toMatch(/401: The admin token is wrong/);
  vi.stubEnv('WEIR_ADMIN_TOKEN', TOKEN);
  expect((await runHere(() => usage('acct_1', { url }))).stdout).toMatch(/^account acct_1/);
});
