import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { HANDSHAKE, startTunnelUpstream } from '../../fixtures/tunnels.ts';

/** Long enough for a handshake on a busy machine; each phase ends by the time-out that the table in docs/proxy.md gives it. */
const TIMES = {
  headersTimeoutMs: 3_000,
  requestTimeoutMs: 6_000,
  bodyTimeoutMs: 2_000,
  keepAliveTimeoutMs: 2_000,
  sendTimeoutMs: 2_000,
};
const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
const NOT_PLAIN = GET.replace('Host', 'TE: trailers\r\nHost');
const POST = `POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 1000\r\n\r\n`;
const WEBSOCKET = `GET /v3/things HTTP/1.1\r\n${HANDSHAKE.join('\r\n')}\r\nAuthorization: Bearer service\r\n\r\n`;
const LARGE = `GET /large HTTP/1.1\r\n${HEAD}\r\n`;

const DRIP_MS = 200;

/** Sends a piece again and again for as long as the connection takes it, behind something else. */
async function drip(socket: Socket, piece: string, first = ''): Promise<void> {
  socket.write(first);
  while (!socket.closed && socket.writable) {
    socket.write(piece);
    await setTimeout(DRIP_MS);
  }
}

type Phase = readonly [name: string, act: (socket: Socket) => unknown, statuses: readonly number[]];

const PHASES: readonly Phase[] = [
  ['nothing is sent', () => {}, [408]],
  ['only empty lines are sent', (socket) => drip(socket, '\r\n'), [408]],
  ['a header stops', (socket) => socket.write(GET.slice(0, 20)), [408]],
  ['a header is dripped', (socket) => drip(socket, 'X-A: a\r\n', GET.slice(0, -2)), [408]],
  ['a body stops', (socket) => socket.write(`${POST}abc`), [408]],
  ['a body is dripped', (socket) => drip(socket, 'a', POST), [408]],
  ['a client is idle', (socket) => socket.write(GET), [200]],
  ['a client is idle after a request that is not plain', (socket) => socket.write(NOT_PLAIN), [200]],
  ['empty lines follow a request', (socket) => drip(socket, '\r\n', GET), [200]],
  ['empty lines follow a request that is not plain', (socket) => drip(socket, '\r\n', NOT_PLAIN), [200]],
  [
    'what follows the last request goes on',
    (socket) => drip(socket, GET, GET.replace('Host', 'Connection: close\r\nHost')),
    [200],
  ],
  ['empty lines come without end', (socket) => drip(socket, '\r\n'.repeat(1_000)), []],
  ['the upstream is silent', (socket) => socket.write(GET.replace('/v3/things', '/silent')), [503]],
  ['a WebSocket is silent', (socket) => socket.write(WEBSOCKET), [101]],
  ['a client ends its side', (socket) => socket.end(GET.replace('/v3/things', '/silent')), []],
  ['a client ends its side within a header', (socket) => socket.end(GET.slice(0, 20)), [400]],
  ['a client ends its side at once', (socket) => socket.end(), []],
];

describe.concurrent.each([
  ['plain', {}],
  ['TLS', { tls: newCertificate() }],
])('a connection with %s ends when', (kind, listen) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    const upstream = await startTunnelUpstream((request, response) => {
      if (request.url === '/silent') return;
      if (request.url === '/large') response.end(Buffer.alloc(64 * 1024 * 1024));
      else request.resume().once('end', () => response.end('ok'));
    });
    gateway = await startGateway({
      upstream,
      limits: PLENTY,
      settings: {
        listen: { host: '127.0.0.1', port: 0, ...TIMES, ...listen },
        // All phases begin at once, so the first answers of the upstream take longest.
        upstream: { url: upstream.url, headersTimeoutMs: 6_000, tunnelIdleTimeoutMs: 2_000 },
      },
    });
  });
  afterAll(() => gateway.close());

  it.concurrent.each(PHASES)('%s', async (_, act, statuses) => {
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    act(socket);
    expect((await answer).statuses).toEqual(statuses);
  });

  it.concurrent('its client leaves before it has sent anything, or within the handshake', async () => {
    const { hostname, port } = new URL(gateway.url);
    // The beginning of a ClientHello (RFC 8446 section 4.1.2). The rest is missing.
    for (const bytes of ['', '\x16\x03\x01\x02\x00\x01']) {
      const socket = connect(Number(port), hostname);
      const answer = untilClosed(socket);
      socket.end(bytes, 'latin1');
      await answer;
    }
    if (kind === 'TLS') {
      const silent = connect(Number(port), hostname);
      expect((await untilClosed(silent)).text).toBe('');
    }
  });

  // A response of 64 MB delays everything else in this process.
  it.sequential('its response is not read', async () => {
    const socket = await connectRaw(gateway.url);
    socket.on('error', () => {}).write(LARGE);
    await drip(socket, '\r\n');
  });
});
