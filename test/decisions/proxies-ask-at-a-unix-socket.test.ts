import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { startGateway } from '../fixtures/gateway.ts';

const SERVICE = { Authorization: 'Bearer service' };

const newPath = () => join(mkdtempSync(join(tmpdir(), 'weir-socket-')), 'weir.sock');

/** A gateway whose socket is at this path. Nobody is in `trusted`: whoever may open the socket may ask. */
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
