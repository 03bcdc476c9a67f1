import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, sendRaw, untilClosed } from '../../fixtures/raw.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

let gateway: TestGateway;
let seen: IncomingMessage[];
let requests: string[];
beforeEach(async () => {
  seen = [];
  requests = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    request.resume().once('end', () => response.end('plain'));
  });
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: true,
    handleProtocols: () => 'chat',
  });
  server.on('upgrade', (request, socket, head) => {
    seen.push(request);
    if (request.url === '/v3/closed') {
      socket.end('HTTP/1.1 409 Conflict\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (client) => {
      client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: [],
    async close() {
      for (const client of sockets.clients) client.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  gateway = await startGateway({ upstream });
});
afterEach(() => gateway.close());

function open(path: string, headers: Readonly<Record<string, string>> = {}): WebSocket {
  const url = gateway.url.replace('http', 'ws') + path;
  return new WebSocket(url, ['chat'], { headers: { Authorization: 'Bearer service', ...headers } });
}

/** The status and the header of what answers an upgrade. */
async function answerTo(client: WebSocket): Promise<IncomingMessage> {
  client.on('error', () => {});
  const [first, second] = await Promise.race([once(client, 'upgrade'), once(client, 'unexpected-response')]);
  return (second ?? first) as IncomingMessage;
}

describe('a WebSocket', () => {
  it('is charged once as a GET, and relays data in both directions', async () => {
    const client = open('/v3/things', { 'X-Own': 'kept', 'X-Account-Id': 'forged', Cookie: 'a=1' });
    const answer = await answerTo(client);
    expect(answer.statusCode).toBe(101);
    expect(answer.headers.ratelimit).toContain('"account-read";r=19');
    expect(answer.headers['x-request-id']).toBeDefined();
    if (client.readyState !== WebSocket.OPEN) await once(client, 'open');
    expect(client.protocol).toBe('chat');
    expect(seen[0]?.headers).toMatchObject({
      authorization: 'Bearer service',
      'x-own': 'kept',
      cookie: 'a=1',
      'x-account-id': 'acct_1',
      'x-forwarded-for': '127.0.0.1',
      'sec-websocket-protocol': 'chat',
    });
    for (const message of ['one', 'x'.repeat(100_000)]) {
      client.send(message);
      expect(String((await once(client, 'message'))[0])).toBe(message);
    }
    client.close(4000, 'bye');
    expect((await once(client, 'close'))[0]).toBe(4000);
    const next = await gateway.send('GET', '/v3/things');
    expect(next.headers.get('RateLimit')).toContain('"account-read";r=18');
  });

  it.each([
    ['without a token', { Authorization: 'Bearer nobody' }, 401],
    ['for a foreign Account', { 'X-Service-Account': 'acct_4' }, 403],
  ])('%s is refused before it reaches the upstream', async (_, headers, status) => {
    const answer = await answerTo(open('/v3/things', headers));
    expect(answer.statusCode).toBe(status);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(seen).toEqual([]);
  });

  it('is a 429 when the bucket is full', async () => {
    for (let count = 0; count < 2; count++) await gateway.send('GET', '/v3/reports');
    const answer = await answerTo(open('/v3/things'));
    expect(answer.statusCode).toBe(429);
    expect(answer.headers['retry-after']).toBeDefined();
    expect(seen).toEqual([]);
  });

  it('that the upstream refuses gets the refusal of the upstream', async () => {
    const answer = await answerTo(open('/v3/closed'));
    expect(answer.statusCode).toBe(409);
    expect(answer.headers.ratelimit).toContain('"account-read";r=19');
    expect(String(await answer.toArray())).toBe('mine');
  });

  it.each([
    ['by Weir', '/v3/things', 401, HEAD.replace('service', 'nobody')],
    ['by the upstream', '/v3/closed', 409, HEAD],
  ])(
    'that is refused %s has ended with its answer, and not with its connection',
    async (_, path, status, head) => {
      const socket = await connectRaw(gateway.url);
      // So that the gateway waits for its end, for a second at most.
      socket.allowHalfOpen = true;
      socket.write(`GET ${path} HTTP/1.1\r\n${head}${HANDSHAKE}\r\n`);
      let answer = '';
      socket.on('data', (chunk) => {
        answer += chunk;
      });
      await once(socket, 'end');
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(await gateway.metrics()).toMatch(/^weir_request_duration_seconds_count 1$/m);
      socket.destroy();
    },
  );

  it('a path is canonical', async () => {
    expect((await answerTo(open('/v3//things'))).statusCode).toBe(400);
  });

  it('ends with its upstream, and its upstream with it', async () => {
    const client = open('/v3/things');
    await once(client, 'open');
    const upstreamEnded = once(seen[0]?.socket ?? client, 'close');
    client.terminate();
    await upstreamEnded;
    const other = open('/v3/things');
    await once(other, 'open');
    const clientEnded = once(other, 'close');
    seen[1]?.socket.destroy();
    expect((await clientEnded)[0]).toBe(1006);
  });

  it('that sends data immediately loses none of it', async () => {
    const socket = await connectRaw(gateway.url);
    // A masked text frame "hi" right behind the handshake.
    const frame = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]);
    socket.write(Buffer.concat([Buffer.from(`GET /v3/things HTTP/1.1\r\n${HEAD}${HANDSHAKE}\r\n`), frame]));
    let text = '';
    for await (const chunk of socket) {
      text += (chunk as Buffer).toString('latin1');
      if (text.endsWith('\x81\x02hi')) break;
    }
    expect(text).toMatch(/^HTTP\/1\.1 101/);
  });
});

it.each(['websocket', 'h2c'])(
  'an upgrade to %s behind other requests waits for their answers',
  async (protocol) => {
    const plain = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.write(
      `${plain}${plain}GET /v3/closed HTTP/1.1\r\n${HEAD}${HANDSHAKE.replace('websocket', protocol)}\r\n`,
    );
    if (protocol === 'h2c') socket.write(plain.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    expect((await answer).statuses).toEqual(protocol === 'h2c' ? [200, 200, 200, 200] : [200, 200, 409]);
  },
);

describe('a request for another protocol is served without the upgrade', () => {
  it.each([
    ['GET', 'h2c', ''],
    ['POST', 'h2c', 'body'],
    ['POST', 'websocket', 'body'],
    ['GET', 'TLS/1.0', ''],
  ])('%s with Upgrade: %s', async (method, protocol, body) => {
    const fields = `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABk\r\n`;
    const answer = await sendRaw(
      gateway.url,
      `${method} /v3/things HTTP/1.1\r\n${HEAD}${fields}Content-Length: ${body.length}\r\n\r\n${body}` +
        `GET /v3/things/next HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`,
    );
    expect(answer.statuses).toEqual([200, 200]);
    expect(requests.toSorted()).toEqual([`${method} /v3/things`, 'GET /v3/things/next'].toSorted());
    expect(seen).toEqual([]);
  });

  it('and broken framing behind it is refused all the same', async () => {
    const socket = await connectRaw(gateway.url);
    socket.write(
      `POST /v3/things HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    );
    expect((await untilClosed(socket)).statuses).toEqual([400]);
    expect(requests).toEqual([]);
  });
});
