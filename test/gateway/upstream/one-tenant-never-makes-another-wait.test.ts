import type { ServerResponse } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { connectRaw } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const SLOW = `GET /v3/things/slow HTTP/1.1\r\n${HEAD}\r\n`;
const UPLOAD = `POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 100000\r\n\r\n`;

/** A gateway whose upstream answers everything but slow requests and uploads. */
async function start(upstreamSettings: object, listen: object = {}) {
  const held: ServerResponse[] = [];
  const upstream = await startUpstream((request, response) => {
    request.resume();
    if (request.method === 'GET' && request.url !== '/v3/things/slow') response.end();
    else held.push(response.once('close', () => held.splice(held.indexOf(response), 1)));
  });
  const gateway = await startGateway({
    upstream,
    limits: { ...PLENTY, limits: { 'account-hour': { per: 'account', points: 100_000, window: '1h' } } },
    settings: {
      upstream: { url: upstream.url, queueTimeoutMs: 60_000, ...upstreamSettings },
      listen,
      log: { level: 'info', access: true },
    },
  });
  onTestFinished(() => gateway.close());
  const send = async (bytes: string, count: number) => {
    const sockets = await Promise.all(Array.from({ length: count }, () => connectRaw(gateway.url)));
    for (const socket of sockets) socket.on('error', () => {}).write(bytes);
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    return sockets;
  };
  const queued = async (count: number) =>
    expect
      .poll(async () => (await gateway.metrics()).match(/weir_upstream_queued\{[^}]*\} (\d+)/)?.[1])
      .toBe(`${count}`);
  return { gateway, held, send, queued };
}

it('while one Account has 60 slow requests under way, another one is served at once', async () => {
  const { gateway, held, send, queued } = await start({ connections: 20 });
  await send(SLOW, 60);
  await queued(42);
  expect(held.length).toBe(18);
  const response = await gateway.send('GET', '/v3/things', { token: 'lonely' });
  expect(response.status).toBe(200);
});

it('while one Account has 60 slow uploads under way, another one is served at once', async () => {
  const { gateway, held, send } = await start({ connections: 20 });
  await send(UPLOAD + 'x'.repeat(65_536), 60);
  await expect.poll(() => held.length).toBe(18);
  const response = await gateway.send('GET', '/v3/things', { token: 'lonely' });
  expect(response.status).toBe(200);
});

it('a request that waits for longer than queueTimeoutMs gets a 503 without Retry-After, and its points back', async () => {
  const { gateway, send } = await start({ connections: 1, queueTimeoutMs: 50 });
  const [slow] = await send(SLOW, 1);
  const response = await gateway.send('GET', '/v3/things');
  expect([response.status, response.headers.get('Retry-After')]).toEqual([503, null]);
  expect(await response.json()).toMatchObject({
    code: 'ServiceUnavailable',
    detail: 'The service behind the gateway was too busy for too long.',
  });
  await expect.poll(() => gateway.metrics()).toContain('weir_upstream_queue_timeouts_total 1');
  expect(await gateway.metrics()).toContain('weir_upstream_queue_seconds_count 1');
  slow?.destroy();
  const next = await gateway.send('GET', '/v3/things');
  expect(next.headers.get('RateLimit')).toContain('"account-hour";r=99998');
});

it('clients that end their side leave the queue and the upstream at once', async () => {
  const { held, send, queued } = await start({ connections: 2 });
  const sockets = await send(SLOW, 6);
  await queued(5);
  for (const socket of sockets) socket.end();
  await queued(0);
  await expect.poll(() => held.length).toBe(0);
});

it.each([
  ['edge', SLOW],
  ['node', SLOW.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')],
])(
  'a request whose client leaves the queue is logged with its wait, which is counted: read by %s',
  async (reader, bytes) => {
    const { gateway, held, send, queued } = await start({ connections: 1 });
    await send(SLOW, 1);
    await expect.poll(() => held.length).toBe(1);
    const [waiting] = await send(bytes, 1);
    await queued(1);
    waiting?.resetAndDestroy();
    await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(1);
    expect(linesOf(gateway, 'request')).toMatchObject([{ status: 0, queuedMs: expect.any(Number) }]);
    const metrics = await gateway.metrics();
    expect(metrics).toContain('weir_upstream_queue_seconds_count 1');
    expect(metrics).toContain(`weir_requests_read_total{reader="${reader}"} 1`);
  },
);

it('with halfClose: serve, a client that ends its side gets its response', async () => {
  const { held, send } = await start({ connections: 2 }, { halfClose: 'serve' });
  const [socket] = await send(SLOW, 1);
  await expect.poll(() => held.length).toBe(1);
  const answer = new Promise<string>((resolve) => socket?.once('data', (bytes) => resolve(String(bytes))));
  socket?.end();
  held[0]?.end();
  expect(await answer).toContain('HTTP/1.1 200 ');
});
