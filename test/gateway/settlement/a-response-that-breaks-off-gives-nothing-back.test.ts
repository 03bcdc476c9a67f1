import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import type { TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { connectRaw, sendRaw } from '../../fixtures/raw.ts';
import { startSettling } from '../../fixtures/settling.ts';
import { handshake, startTunnelUpstream } from '../../fixtures/tunnels.ts';
import { SharedSettling } from './shared-settling.ts';

const shared = new SharedSettling();

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const EVENT = 'data: {"usage":{"total_tokens":7}}\n\n';
const LARGE_EVENT = 'data: {"usage":{"total_tokens":5000}}\n\n';
const EVENTS = { 'Content-Type': 'text/event-stream' };
const LONG_TEXT = 'x'.repeat(1_200_000);

/** Sends a request, and leaves when the first bytes of the response's body have come. */
async function leaveEarly(gateway: TestGateway, path: string): Promise<void> {
  const client = await connectRaw(gateway.url);
  client.on('error', () => {}).write(`POST ${path} HTTP/1.1\r\n${HEAD}Content-Length: 0\r\n\r\n`);
  let text = '';
  for await (const chunk of client) {
    text += chunk;
    if (/\r\n\r\n./s.test(text)) break;
  }
  client.destroy();
}

it.each([
  ['/json', EVENT, { unsettled: 'abandoned' }],
  ['/json', LARGE_EVENT, { settled: 5000 }],
  ['/bytes', Buffer.alloc(100_000), { unsettled: 'abandoned' }],
  ['/bytes', Buffer.alloc(6_000 * 1024), { settled: expect.any(Number) }],
  ['/header', EVENT, { unsettled: 'abandoned' }],
])(
  'a client that leaves early pays what it has reserved, or what is known if that is more: %s',
  async (path, body, cost) => {
    shared.answer = (response) => response.writeHead(200, { ...EVENTS, 'X-Cost': '7' }).write(body);
    if (body.length < 200_000) await leaveEarly(shared.gateway, path);
    else await leaveAfter(shared.gateway, path, 5_000 * 1024);
    const known = await shared.lastCost();
    expect(known).toEqual({ cost: 4_000, ...cost });
    if ('settled' in known) expect(known.settled).toBeGreaterThanOrEqual(4_000);
  },
);

it.each([
  ['is encoded', '/json', gzipSync(EVENT), { 'Content-Encoding': 'gzip' }],
  ['has two meanings', '/json.json', EVENT, {}],
])(
  'a client that leaves early is named as the reason where the response %s',
  async (_, path, body, fields) => {
    const cost = 4_000;
    const list = [
      { method: 'POST', path: '/json', cost, settle: { json: '/usage/total_tokens' } },
      { method: 'POST', path: '/{any}', cost, settle: { bytes: 1024 } },
    ];
    const gateway = await startSettling({ operations: { list } });
    gateway.answer = (response) => response.writeHead(200, { ...EVENTS, ...fields }).write(body);
    await leaveEarly(gateway, path);
    expect(await gateway.costOf()).toEqual({ cost, unsettled: 'abandoned' });
    expect(linesOf(gateway, 'request')[0]).not.toHaveProperty('upstreamError');
    expect(await gateway.metrics()).toMatch(/^weir_unsettled_total\{reason="abandoned"\} 1$/m);
  },
);

async function leaveAfter(gateway: TestGateway, path: string, bytes: number): Promise<void> {
  const client = await connectRaw(gateway.url);
  client.on('error', () => {}).write(`POST ${path} HTTP/1.1\r\n${HEAD}Content-Length: 0\r\n\r\n`);
  for await (const _ of client) if (client.bytesRead > bytes) break;
  client.destroy();
}

it('a client that leaves before the response pays what it has reserved', async () => {
  const arrived = new Promise<void>((resolve) => {
    shared.answer = () => resolve();
  });
  const client = await connectRaw(shared.gateway.url);
  client.on('error', () => {}).write(`POST /json HTTP/1.1\r\n${HEAD}Content-Length: 0\r\n\r\n`);
  await arrived;
  client.resetAndDestroy();
  expect(await shared.lastCost()).toEqual({ cost: 4_000, unsettled: 'abandoned' });
});

const broken =
  (text: string | Buffer, fields: object = EVENTS) =>
  (response: ServerResponse) => {
    response
      .writeHead(200, { 'Content-Length': 10_000_000, ...fields })
      .write(text, () => response.destroy());
  };

it.each([
  ['/json', broken(EVENT), { unsettled: 'cut' }],
  ['/json', broken(LARGE_EVENT), { settled: 5000 }],
  ['/json', broken('{"usage":{"total_tokens":5000}}', {}), { settled: 5000 }],
  ['/json', broken('{"usage":{"total_tokens":5000},"data":"', {}), { settled: 5000 }],
  ['/json', broken('{"usage":{"total_tokens":5000', {}), { unsettled: 'cut' }],
  ['/json', broken('{"usage":{"total_tokens":7}}', {}), { unsettled: 'cut' }],
  ['/json', broken(`{"usage":{"total_tokens":7},"data":"${LONG_TEXT}`, {}), { unsettled: 'cut' }],
  ['/json', broken(`{"usage":{"total_tokens":5000},"data":"${LONG_TEXT}`, {}), { settled: 5000 }],
  ['/bytes', broken('x'), { unsettled: 'cut' }],
  ['/json', (response: ServerResponse) => void response.destroy(), { unsettled: 'unanswered' }],
])(
  'an upstream that breaks off leaves the reservation, or what is known if that is more: %s',
  async (path, answer, cost) => {
    shared.answer = answer;
    await sendRaw(
      shared.gateway.url,
      `POST ${path} HTTP/1.1\r\n${HEAD}Content-Length: 0\r\nConnection: close\r\n\r\n`,
    );
    expect(await shared.lastCost()).toEqual({ cost: 4_000, ...cost });
  },
);

it.each([
  ['HEAD', '/bytes', 200, { settled: 0 }],
  ['GET', '/bytes', 204, { settled: 0 }],
  ['GET', '/bytes', 304, { settled: 0 }],
  ['POST', '/json', 204, { unsettled: 'missing' }],
  ['POST', '/header', 204, { settled: 3 }],
])('a response without a body has no bytes: %s %s, %i', async (method, path, status, cost) => {
  shared.answer = (response) => {
    const fields = status === 200 ? { 'Content-Length': 5_000 } : {};
    response.writeHead(status, { 'X-Cost': '3', ...fields }).end();
  };
  await (await shared.gateway.send(method, path)).text();
  expect(await shared.lastCost()).toEqual({ cost: 4_000, ...cost });
});

it('a response whose end is the end of its connection is whole', async () => {
  shared.answer = (response) => {
    response.socket?.end('HTTP/1.0 200 OK\r\n\r\n{"usage":{"total_tokens":812}}');
  };
  const { text } = await sendRaw(
    shared.gateway.url,
    `POST /json HTTP/1.0\r\n${HEAD}Content-Length: 0\r\n\r\n`,
  );
  expect(text).toContain('{"usage":{"total_tokens":812}}');
  expect(await shared.lastCost()).toEqual({ cost: 4_000, settled: 812 });
});

it('a tunnel costs what it has reserved', async () => {
  const upstream = await startTunnelUpstream();
  const gateway = await startSettling({ upstream });
  const { socket } = await handshake(gateway.url, '/bytes', ['Authorization: Bearer service']);
  socket.destroy();
  for (const tunnel of upstream.tunnels) tunnel.resume().once('end', () => tunnel.end());
  expect(await gateway.costOf()).toEqual({ cost: 4_000, unsettled: 'tunnel' });
});
