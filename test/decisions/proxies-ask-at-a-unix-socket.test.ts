import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { startGateway } from '../fixtures/gateway.ts';
import { type ProxyRecipe, startProxy } from '../fixtures/proxies.ts';
import { PROXIES } from '../fixtures/proxy-recipes.ts';
import { recipe, replaced, startRecipe } from '../fixtures/recipes.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { describeProxy } from './describe-proxy.ts';

const SERVICE = { Authorization: 'Bearer service' };

const newPath = () => join(mkdtempSync(join(tmpdir(), 'weir-socket-')), 'weir.sock');

/** A gateway whose socket is at this path. Nobody is in `trusted`: every process that may open the socket may ask. */
async function startAt(socketPath: string) {
  const gateway = await startGateway({
    settings: { decisions: { socketPath, trusted: [] }, log: { level: 'info' } },
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function ask(socketPath: string, path: string, headers: Readonly<Record<string, string>>) {
  const asking = request({ socketPath, path, headers, agent: false }).end();
  const [response] = await once(asking, 'response');
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

it('answers who may open the socket, which is its owner and its group, and removes it at the end', async () => {
  const path = newPath();
  const gateway = await startAt(path);
  expect(gateway.decisionsUrl).toBe(`unix:${path}`);
  expect(statSync(path).mode & 0o777).toBe(0o660);
  const answer = await ask(path, '/ext-authz/v3/things', SERVICE);
  expect([answer.status, answer.headers['x-account-id']]).toEqual([200, 'acct_1']);
  expect(gateway.lines.join()).toContain(`"decisionsUrl":"unix:${path}"`);
  await gateway.close();
  expect(existsSync(path)).toBe(false);
});

it('takes the address of the client from X-Forwarded-For', async () => {
  const path = newPath();
  const gateway = await startAt(path);
  const headers = {
    Authorization: 'Bearer service',
    'X-Forwarded-For': '192.0.2.7',
    'X-Request-Id': 'from-nginx',
  };
  await ask(path, '/ext-authz/v3/things', headers);
  await expect
    .poll(() => gateway.lines.find((line) => line.includes('from-nginx')))
    .toContain('"clientAddress":"192.0.2.7"');
});

it('replaces a socket that a process left behind when it was killed', async () => {
  const path = newPath();
  const program = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  expect(spawnSync(process.execPath, ['-e', program]).signal).toBe('SIGKILL');
  expect(statSync(path).isSocket()).toBe(true);
  await startAt(path);
  expect((await ask(path, '/ext-authz/v3/things', SERVICE)).status).toBe(200);
});

it('leaves alone a socket that a process listens at, and every other file', async () => {
  const path = newPath();
  await startAt(path);
  await expect(startAt(path)).rejects.toThrow(`Another process listens at ${path}.`);
  expect((await ask(path, '/ext-authz/v3/things', SERVICE)).status).toBe(200);
  writeFileSync(`${path}.txt`, 'a file of somebody else');
  await expect(startAt(`${path}.txt`)).rejects.toThrow(`${path}.txt is there already, and is not a socket.`);
  expect(statSync(`${path}.txt`).size).toBe(23);
  await expect(startAt(join(path, '..', 'no-folder', 'weir.sock'))).rejects.toThrow('its folder must exist');
});

/** How the recipes name a socket instead of `127.0.0.1:9000`. */
const AT_SOCKET: Readonly<Record<string, (path: string) => ProxyRecipe['patience']>> = {
  nginx: (path) => ({ 'nginx.conf': { 'server 127.0.0.1:9000;': `server unix:${path};` } }),
  Envoy: (path) => ({
    'envoy.yaml': { 'socket_address: { address: 127.0.0.1, port_value: 9000 }': `pipe: { path: ${path} }` },
  }),
  Caddy: (path) => ({ Caddyfile: { 'reverse_proxy 127.0.0.1:9000': `reverse_proxy unix/${path}` } }),
  HAProxy: (path) => ({ 'haproxy.cfg': { ' 127.0.0.1:9000 check': ` unix@${path} check` } }),
};

for (const proxy of PROXIES) {
  const named = AT_SOCKET[proxy.name];
  if (named === undefined) continue;
  describeProxy(proxy, () => {
    it('asks at the socket', async () => {
      const path = newPath();
      const env = { WEIR_DECISIONS_SOCKET_PATH: path, WEIR_DECISIONS_PORT: '', WEIR_PORT: '' };
      const page = `proxies/${proxy.name.toLowerCase()}`;
      const settings = replaced(recipe(page)['weir.yaml'] ?? '', { 'decisions: { port: 9000 }': '' });
      const weir = await startRecipe(page, { files: { 'weir.yaml': settings }, env });
      const upstream = await startUpstream();
      const asking = { ...proxy, patience: named(path) };
      const running = await startProxy(asking, upstream.url, ['http://127.0.0.1:9000']);
      for (const one of [running, weir, upstream]) onTestFinished(() => one.close());
      const headers = { Authorization: 'Bearer alice-token' };
      const response = await fetch(`${running.url}/items`, { headers });
      expect([response.status, response.headers.get('RateLimit')]).toEqual([
        200,
        expect.stringContaining(';r=19;'),
      ]);
      expect(upstream.seen.at(-1)?.headers['x-account-id']).toBe('acct_a');
    });
  });
}
