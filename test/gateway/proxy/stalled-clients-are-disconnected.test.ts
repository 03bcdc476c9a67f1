import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
/** More than the system takes for a client that does not read. */
const LONG_BYTES = 32 << 20;

let gateway: TestGateway;
afterEach(() => gateway.close());

/** An upstream with a long answer at /v3/things and a short one elsewhere, and how many long ones are under way. */
async function startLong(listen: Readonly<Record<string, unknown>>) {
  const open = { count: 0, total: 0 };
  const upstream = await startUpstream((request, response) => {
    if (request.url !== '/v3/things') {
      response.end('short');
      return;
    }
    open.count++;
    open.total++;
    response.once('close', () => open.count--);
    response.end(Buffer.alloc(LONG_BYTES, 'x'));
  });
  gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: {
      listen: { host: '127.0.0.1', port: 0, ...listen },
      upstream: { url: upstream.url, connections: 5, maxWaiting: 1 },
    },
  });
  return open;
}

describe('a client that does not read its response', () => {
  it('is disconnected, and its upstream socket is released', async () => {
    const open = await startLong({ sendTimeoutMs: 300 });
    const clients = await Promise.all(Array.from({ length: 5 }, () => connectRaw(gateway.url)));
    for (const client of clients) client.on('error', () => {}).write(GET);
    await expect.poll(() => open.total, { timeout: 60_000 }).toBe(5);
    for (const client of clients) client.pause();
    await expect.poll(() => open.count, { timeout: 60_000 }).toBe(0);
    expect((await gateway.send('GET', '/v3/things/short')).status).toBe(200);
    for (const client of clients) {
      await untilClosed(client.resume());
      expect(client.bytesRead).toBeLessThan(LONG_BYTES);
    }
  });

  it.each([
    ['', {}],
    [' over TLS', { tls: newCertificate() }],
  ])('is reset%s, so that the system keeps no unsent bytes for it', async (_, listen) => {
    const open = await startLong({ ...listen, sendTimeoutMs: 300 });
    const client = await connectRaw(gateway.url);
    client.on('error', () => {}).write(GET);
    client.pause();
    await expect.poll(() => open.total, { timeout: 60_000 }).toBe(1);
    await expect.poll(() => open.count, { timeout: 60_000 }).toBe(0);
    await untilClosed(client.resume());
    // What had arrived; a close would leave it the 4 MB that the system had taken.
    expect(client.bytesRead).toBeLessThan(LONG_BYTES / 32);
  });

  it('is also disconnected if the gateway itself responds', async () => {
    await startLong({ sendTimeoutMs: 300 });
    const client = (await connectRaw(gateway.url)).on('error', () => {});
    const request = `GET /v3/things HTTP/1.1\r\nHost: weir\r\nX-Request-Id: ${'r'.repeat(128)}\r\n\r\n`;
    client.pause();
    // Something is always left to write: a client that neither reads nor writes does not notice that it was reset.
    while (!client.destroyed) {
      if (client.writableLength < 1 << 20) client.write(request.repeat(1_000));
      await new Promise(setImmediate);
    }
  });

  it('for a while, but resumes before the timeout, gets all of it', async () => {
    await startLong({ sendTimeoutMs: 1_000 });
    const client = await connectRaw(gateway.url);
    const answer = untilClosed(client);
    client.write(GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    const pauses = 12;
    for (let count = 1; count <= pauses; count++) {
      while (client.bytesRead < (count * LONG_BYTES) / pauses - 1) await once(client, 'data');
      client.pause();
      await setTimeout(100);
      client.resume();
    }
    await answer;
    expect(client.bytesRead).toBeGreaterThan(LONG_BYTES);
  });
});

it('a WebSocket is closed on both sides if one does not read', async () => {
  const behind: Socket[] = [];
  const upstream = await startTcpUpstream((socket) => {
    behind.push(socket);
    socket.once('data', () => {
      socket.pause();
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    });
  });
  gateway = await startGateway({
    upstream,
    settings: { listen: { host: '127.0.0.1', port: 0, sendTimeoutMs: 300 } },
  });
  const client = await connectRaw(gateway.url);
  client.write(
    `GET /v3/things HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  await once(client, 'data');
  client.write(Buffer.alloc(LONG_BYTES));
  await untilClosed(client);
  expect(behind).toHaveLength(1);
  for (const socket of behind) await untilClosed(socket.resume());
});

it('an upstream that does not read a long upload is a 503 after the timeout', async () => {
  const upstream = await startTcpUpstream((socket) => socket.pause());
  gateway = await startGateway({
    upstream,
    settings: { upstream: { url: upstream.url, headersTimeoutMs: 300 } },
  });
  const client = (await connectRaw(gateway.url)).on('error', () => {});
  const answer = untilClosed(client);
  client.write(`POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: ${LONG_BYTES}\r\n\r\n`);
  client.write(Buffer.alloc(LONG_BYTES));
  const { statuses, text } = await answer;
  expect(statuses).toEqual([503]);
  expect(text).toContain('did not answer in time');
});
