import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

const POST = 'POST /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n';
const SHORT = `${POST}Content-Length: 600\r\n\r\n`;
const LONG = `${POST}Content-Length: 100000\r\n\r\n`;
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
const EXPECTING = `${POST}Expect: 100-continue\r\nContent-Length: 600\r\n\r\n`;
/** Node's server reads it. */
const LONG_AND_LAST = LONG.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
/** As much of a long body as is read before its request takes a place. */
const BEGINNING = 'x'.repeat(65_536);

const uploadsIn = ({ seen }: TestUpstream) => seen.filter(({ method }) => method === 'POST').length;

/** A gateway whose upstream answers with the length of the body that it got. */
async function start(connections: number, settings: object = {}) {
  const open = { count: 0 };
  const upstream = await startUpstream(async (request, response) => {
    open.count++;
    response.once('close', () => open.count--);
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
    });
    request.once('end', () => response.end(`${length}`));
  });
  const gateway = await startGateway({
    upstream,
    limits: { ...PLENTY, limits: { 'account-hour': { per: 'account', points: 100_000, window: '1h' } } },
    settings: { upstream: { url: upstream.url, connections, queueTimeoutMs: 60_000 }, ...settings },
  });
  onTestFinished(() => gateway.close());
  const send = async (count: number, bytes: string): Promise<readonly Socket[]> => {
    const sockets = await Promise.all(Array.from({ length: count }, () => connectRaw(gateway.url)));
    for (const socket of sockets) socket.on('error', () => {}).write(bytes);
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    return sockets;
  };
  const metric = async (name: string) =>
    Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'm').exec(await gateway.metrics())?.[1]);
  let asked = 0;
  /** How many points the uploads have cost. */
  const spent = async () => {
    const response = await gateway.send('GET', '/v3/things');
    asked++;
    const left = /"account-hour";r=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1];
    return 100_000 - Number(left) - asked;
  };
  const charged = (count: number) => expect.poll(spent, { timeout: 60_000 }).toBeGreaterThanOrEqual(count);
  return { gateway, upstream, open, send, metric, spent, charged };
}

it('200 uploads of one Account at an octet each 25 seconds keep nobody else waiting', async () => {
  const { gateway, upstream, send, metric, charged } = await start(2);
  const slow = await send(200, `${SHORT}x`);
  await charged(200);
  for (const socket of slow) socket.write('y');
  for (const token of ['lonely', 'other', 'service']) {
    expect((await gateway.send('GET', '/v3/things', { token })).status).toBe(200);
    expect(await metric('weir_upstream_queued')).toBe(0);
  }
  expect(uploadsIn(upstream)).toBe(0);
});

it('a short body that arrives octet by octet reaches the upstream whole', async () => {
  const { send, upstream } = await start(2);
  const [socket] = await send(1, SHORT);
  for (let sent = 0; sent < 599; sent++) {
    socket?.write('x');
    if (sent % 50 === 0) await new Promise(setImmediate);
  }
  expect(uploadsIn(upstream)).toBe(0);
  socket?.write('x');
  if (socket !== undefined) expect(String((await once(socket, 'data'))[0])).toContain('\r\n\r\n600');
});

it('upstream.bodyBufferBytes is the length of the longest body that is read first', async () => {
  const { gateway, send, open, charged } = await start(2);
  await send(1, `${SHORT}half`);
  await charged(1);
  expect(open.count).toBe(0);
  for (const [index, bodyBufferBytes] of [100, 0].entries()) {
    const small = await startGateway({
      upstream: await startUpstream(),
      settings: { upstream: { url: gateway.upstream.url, bodyBufferBytes } },
    });
    onTestFinished(() => small.close());
    const streamed = await connectRaw(small.url);
    onTestFinished(() => void streamed.destroy());
    streamed.write(SHORT + 'x'.repeat(bodyBufferBytes));
    await expect.poll(() => open.count).toBe(index + 1);
  }
});

it.each([
  ['empty', LONG, ''],
  ['almost there', LONG, BEGINNING.slice(1)],
  ['read by Node', LONG_AND_LAST, 'half'],
])('a long upload whose beginning is %s takes no place', async (_, head, part) => {
  const { gateway, upstream, send, metric, charged } = await start(1);
  const [socket] = await send(1, head + part);
  await charged(1);
  for (const token of ['lonely', 'other']) {
    expect((await gateway.send('GET', '/v3/things', { token })).status).toBe(200);
    expect(await metric('weir_upstream_queued')).toBe(0);
  }
  expect(uploadsIn(upstream)).toBe(0);
  let text = '';
  socket?.on('data', (bytes) => {
    text += bytes;
  });
  socket?.write(BEGINNING.slice(part.length));
  await expect.poll(() => uploadsIn(upstream)).toBe(1);
  socket?.write('x'.repeat(100_000 - BEGINNING.length));
  await expect.poll(() => text).toMatch(/\r\n\r\n.*100000/s);
});

it('a long upload that leaves, ends or stalls within its beginning takes no place', async () => {
  const { send, charged, upstream } = await start(2, {
    listen: { host: '127.0.0.1', port: 0, bodyTimeoutMs: 1_000 },
  });
  for (const [index, head] of [LONG, LONG_AND_LAST].entries()) {
    const [leaving, ending, stalling] = await send(3, head + BEGINNING.slice(1));
    await charged(3 * index + 3);
    leaving?.resetAndDestroy();
    ending?.end();
    if (ending !== undefined) expect((await untilClosed(ending)).statuses).toEqual([400]);
    if (stalling !== undefined) expect((await untilClosed(stalling)).statuses).toEqual([408]);
  }
  expect(uploadsIn(upstream)).toBe(0);
});

it('requests behind a long upload on its connection are answered after it', async () => {
  const { send } = await start(1);
  const [socket] = await send(1, LONG);
  const answer = socket && untilClosed(socket);
  for (let sent = 0; sent < 100_000; sent += 25_000) {
    await new Promise(setImmediate);
    socket?.write('x'.repeat(25_000));
  }
  const last = `${POST.replace('POST', 'GET')}Connection: close\r\n\r\n`;
  socket?.write(SHORT + 'x'.repeat(600) + last);
  const { statuses, text } = (await answer) ?? { statuses: [], text: '' };
  expect(statuses).toEqual([200, 200, 200]);
  expect(text.match(/\r\n\r\n\d+/g)?.map((body) => Number(body))).toEqual([100_000, 600, 0]);
});

it.each([
  ['the edge', ''],
  ['Node', 'TE: trailers\r\n'],
])(
  'a connection that %s reads goes on after an upload that got no turn behind its beginning',
  async (_, line) => {
    const hanging = await startUpstream((request) => void request.resume());
    onTestFinished(() => hanging.close());
    const { send } = await start(1, {
      upstream: { url: hanging.url, connections: 1, queueTimeoutMs: 50, bodyBufferBytes: 1_000 },
    });
    await send(1, `${POST.replace('POST', 'GET')}\r\n`);
    await expect.poll(() => hanging.seen.length).toBe(1);
    const [socket] = await send(1, `${POST}${line}Content-Length: 60000\r\n\r\n${'x'.repeat(1_000)}`);
    const answer = socket && untilClosed(socket);
    if (socket !== undefined) await once(socket, 'data');
    for (const part of ['x'.repeat(20_000), 'x'.repeat(20_000), 'x'.repeat(19_000)]) {
      socket?.write(part);
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    }
    socket?.write('GET /v3/things HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n');
    expect((await answer)?.statuses).toEqual([503, 401]);
  },
);

it('a short body that ends early takes no place and never reaches the upstream', async () => {
  const { send, charged, upstream } = await start(2);
  const [ending, leaving] = await send(2, `${SHORT}half`);
  await charged(2);
  leaving?.resetAndDestroy();
  ending?.end();
  if (ending !== undefined) expect((await untilClosed(ending)).statuses).toEqual([400]);
  expect(uploadsIn(upstream)).toBe(0);
});

it('a short body that stalls gets a 408', async () => {
  const { send, upstream } = await start(2, {
    listen: { host: '127.0.0.1', port: 0, bodyTimeoutMs: 200 },
  });
  const [socket] = await send(1, `${SHORT}half`);
  if (socket !== undefined) expect((await untilClosed(socket)).statuses).toEqual([408]);
  expect(uploadsIn(upstream)).toBe(0);
});

it.each([
  ['long', LONG, BEGINNING],
  ['chunked', CHUNKED, '4\r\nhalf\r\n'],
  ['expecting', EXPECTING, 'half'],
])(
  'a stalled %s upload gives way with a 408 and its points back, while somebody waits',
  async (_, head, part) => {
    const { gateway, open, send, spent } = await start(1);
    const [stalled] = await send(1, head + part);
    await expect.poll(() => open.count).toBe(1);
    const ended = stalled && untilClosed(stalled);
    // Two wait; the first gets the place, and its end is enough for the other.
    const answers = await Promise.all([
      gateway.send('GET', '/v3/things', { token: 'other' }),
      gateway.send('GET', '/v3/things', { token: 'lonely' }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const { statuses, text } = (await ended) ?? { statuses: [], text: '' };
    expect(statuses.at(-1)).toBe(408);
    expect(text).toContain('The request arrived too slowly while others waited for the service.');
    await expect.poll(spent).toBe(0);
  },
);

it('tunnels that are opened and abandoned among waiting requests leave nothing, and a drain answers who waits', async () => {
  const tunnels: Duplex[] = [];
  const held: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (request.url === '/v3/things/slow') held.push(response);
    else response.end('ok');
  });
  server.on('upgrade', (_, socket) => {
    tunnels.push(
      socket
        .on('error', () => {})
        .resume()
        .once('end', () => socket.end()),
    );
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { gateway, send, metric } = await start(8, {
    upstream: {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      connections: 8,
      queueTimeoutMs: 60_000,
    },
    shutdown: { drainDelaySeconds: 0, graceSeconds: 1 },
  });
  const get = (path: string, token: string, lines = '') =>
    `GET ${path} HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer ${token}\r\n${lines}\r\n`;
  const upgrade = get('/v3/things', 'lonely', 'Connection: Upgrade\r\nUpgrade: websocket\r\n');
  const slow = await send(20, get('/v3/things/slow', 'service'));
  await expect.poll(() => metric('weir_upstream_queued')).toBeGreaterThan(10);
  for (let round = 0; round < 3; round++) {
    const before = tunnels.length;
    const opened = await send(12, upgrade);
    await expect.poll(() => tunnels.length).toBeGreaterThan(before);
    for (const [index, socket] of opened.entries()) {
      if (index % 2 === 0) socket.resetAndDestroy();
      else socket.destroy();
    }
    await expect.poll(() => tunnels.filter(({ destroyed }) => !destroyed).length).toBe(0);
    const token = { token: 'lonely' };
    expect((await gateway.send('GET', '/v3/things', token)).status).toBe(200);
  }
  for (const socket of slow.slice(0, 10)) socket.resetAndDestroy();
  await expect.poll(() => metric('weir_upstream_queued')).toBeLessThan(10);
  const answers = slow.slice(10).map((socket) => untilClosed(socket));
  const closed = gateway.close();
  for (const response of held) response.end('late');
  await closed;
  const statuses = (await Promise.all(answers)).flatMap((answer) => answer.statuses);
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(statuses.length).toBeGreaterThan(0);
  await expect.poll(() => tunnels.every(({ destroyed }) => destroyed)).toBe(true);
});

it('no place is lost to clients that stall, leave, end early or send at once', async () => {
  const { gateway, open, send, metric } = await start(8);
  const kinds = [
    [SHORT, 'x'.repeat(600)],
    [SHORT, 'half'],
    [LONG, 'half'],
    [LONG, BEGINNING],
    [LONG, 'x'.repeat(100_000)],
    [CHUNKED, '4\r\nhalf\r\n'],
    [CHUNKED, '4\r\nhalf\r\n0\r\n\r\n'],
    [EXPECTING, 'half'],
    [SHORT.replace('HTTP/1.1', 'HTTP/1.0'), 'half'],
    [LONG.replace('HTTP/1.1', 'HTTP/1.0'), 'half'],
    [SHORT.replace('POST', 'HEAD'), 'half'],
    [POST.replace('POST', 'HEAD'), '\r\n'],
    [`${POST.replace('POST', 'GET')}Connection: Upgrade\r\nUpgrade: websocket\r\n`, '\r\n'],
  ];
  const groups = await Promise.all(kinds.map(([head = '', part = '']) => send(12, head + part)));
  await expect.poll(() => open.count).toBeGreaterThan(4);
  const sockets = groups.flat();
  for (const [index, socket] of sockets.entries()) {
    if (index % 3 === 0) socket.resetAndDestroy();
    else if (index % 3 === 1) socket.end();
  }
  expect((await gateway.send('GET', '/v3/things', { token: 'other' })).status).toBe(200);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => open.count).toBe(0);
  await expect.poll(() => metric('weir_upstream_queued')).toBe(0);
  const all = await Promise.all(Array.from({ length: 40 }, () => gateway.send('GET', '/v3/things')));
  expect(all.every(({ status }) => status === 200)).toBe(true);
});
