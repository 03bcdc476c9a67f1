import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, sendRaw, untilClosed } from '../../fixtures/raw.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const AUTHORIZED = 'Authorization: Bearer service\r\n';
const HEAD = `Host: weir\r\n${AUTHORIZED}`;
const CLOSE = 'Connection: close\r\n';
const KEY = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n';
const HANDSHAKE = `Connection: Upgrade\r\nUpgrade: websocket\r\n${KEY}`;

let gateway: TestGateway;

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<void> {
  gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
}

/** An upstream that writes these bytes in answer to each request. */
async function startSaying(bytes: string): Promise<void> {
  const upstream = await startTcpUpstream((socket) => socket.on('data', () => socket.write(bytes)));
  await start({ upstream });
}

const SERVED = { listen: { halfClose: 'serve' } };

describe('a client that closes its sending side', () => {
  it('after its request gets the response', async () => {
    const held: ServerResponse[] = [];
    const upstream = await startUpstream((_, response) => held.push(response));
    await start({ upstream, settings: SERVED });
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.end(`GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`);
    await expect.poll(() => held.length).toBe(1);
    // The gateway has read the end: a request that came later has been answered.
    await gateway.send('GET', '/v3/none', { token: 'nobody' });
    held[0]?.end('served');
    const { statuses, text } = await answer;
    expect(statuses, text).toEqual([200]);
    expect(text).toContain('served');
  });

  it('after several requests gets every response', async () => {
    await start({ settings: SERVED });
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.end(`GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`.repeat(3));
    expect((await answer).statuses).toEqual([200, 200, 200]);
  });

  it('after a refused request gets the refusal', async () => {
    await start();
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.end('GET /v3/things HTTP/1.1\r\nHost: weir\r\n\r\n');
    expect((await answer).statuses).toEqual([401]);
  });

  it('within a header gets a 400', async () => {
    await start();
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.end('GET /v3/things HTTP/1.1\r\nHost: weir\r\n');
    expect((await answer).statuses).toEqual([400]);
  });

  it('without a request gets nothing', async () => {
    await start();
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.end();
    expect((await answer).text).toBe('');
  });
});

describe('invalid requests', () => {
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it.each([
    ['CONNECT', `CONNECT db.internal:5432 HTTP/1.1\r\nHost: db.internal:5432\r\n${AUTHORIZED}\r\n`, 405],
    ['CONNECT with bytes behind it', `CONNECT weir:80 HTTP/1.1\r\n${HEAD}\r\n${'x'.repeat(1_000)}`, 405],
    ['RTSP/1.0', `GET /v3/things RTSP/1.0\r\n${HEAD}\r\n`, 400],
    ['RTSP/1.1', `POST /v3/things RTSP/1.1\r\n${HEAD}Content-Length: 0\r\n\r\n`, 400],
    ['ICE/1.0', `SOURCE /v3/things ICE/1.0\r\n${HEAD}\r\n`, 400],
    ['HTTP/0.9 with a version', `GET /v3/things HTTP/0.9\r\n${HEAD}\r\n`, 400],
    ['HTTP/1.1 without Host', `GET /v3/things HTTP/1.1\r\n${AUTHORIZED}\r\n`, 400],
    ['a WebSocket without Host', `GET /v3/things HTTP/1.1\r\n${AUTHORIZED}${HANDSHAKE}\r\n`, 400],
    [
      'an unknown expectation',
      `POST /v3/things HTTP/1.1\r\n${HEAD}Expect: more\r\nContent-Length: 1\r\n\r\n`,
      417,
    ],
    [
      'two expectations',
      `POST /v3/things HTTP/1.1\r\n${HEAD}Expect: a, 100-continue\r\nContent-Length: 1\r\n\r\n`,
      417,
    ],
  ])('%s', async (_, bytes, status) => {
    const { statuses, text } = await sendRaw(gateway.url, bytes);
    expect(statuses, text).toEqual([status]);
    expect(text).toMatch(/^Connection: close\r$/m);
    expect(text).toContain('Content-Type: application/problem+json');
    expect(text).not.toContain('RateLimit');
    expect(gateway.upstream.seen).toEqual([]);
  });
});

describe('HTTP/1.0', () => {
  it('without Host is served', async () => {
    await start();
    const answer = await sendRaw(gateway.url, `GET /v3/things HTTP/1.0\r\n${AUTHORIZED}\r\n`);
    expect(answer.statuses).toEqual([200]);
  });

  it('is never sent a 100, and its body arrives', async () => {
    await start();
    const answer = await sendRaw(
      gateway.url,
      `POST /v3/things HTTP/1.0\r\n${HEAD}Expect: 100-continue\r\nContent-Length: 4\r\n\r\nbody`,
    );
    expect(answer.statuses).toEqual([200]);
  });

  it('has no WebSocket: the request is served without the upgrade', async () => {
    await start();
    const answer = await sendRaw(gateway.url, `GET /v3/things HTTP/1.0\r\n${HEAD}${HANDSHAKE}\r\n`);
    expect(answer.statuses).toEqual([200]);
    expect(gateway.upstream.seen[0]?.headers.upgrade).toBeUndefined();
  });

  it('gets no interim response', async () => {
    await startSaying(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    );
    const answer = await sendRaw(gateway.url, `GET /v3/things HTTP/1.0\r\n${HEAD}\r\n`);
    expect(answer.statuses).toEqual([200]);
  });
});

describe('an interim response of the upstream', () => {
  it.each([
    [100, 'Continue', ''],
    [102, 'Processing', ''],
    [103, 'Early Hints', 'Link: </style.css>; rel=preload\r\nX-Own: a\r\n'],
    [110, 'Of Its Own', ''],
  ])(
    '%i is passed on before the final one, without what is the gateway’s',
    async (status, reason, fields) => {
      await startSaying(
        `HTTP/1.1 ${status} ${reason}\r\n${fields}RateLimit: forged\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`,
      );
      const { statuses, text } = await sendRaw(gateway.url, `GET /v3/things HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
      expect(statuses).toEqual([status, 200]);
      expect(text).not.toContain('forged');
      if (fields !== '') expect(text).toMatch(/^link: <\/style.css>; rel=preload\r\nx-own: a\r$/im);
      expect(text).toMatch(/\r\n\r\nok$/);
    },
  );
});

describe('an upgrade that the upstream accepts', () => {
  it.each([
    ['to another protocol', 'Connection: Upgrade\r\nUpgrade: h2c\r\n'],
    ['to no protocol', ''],
    ['to two protocols', 'Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n'],
  ])('%s is a 503, and no tunnel', async (_, fields) => {
    const behind: Socket[] = [];
    const upstream = await startTcpUpstream((socket) => {
      behind.push(socket);
      socket.once('data', () => socket.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\nsecret`));
    });
    await start({ upstream });
    const { statuses, text } = await sendRaw(
      gateway.url,
      `GET /v3/things HTTP/1.1\r\n${HEAD}${HANDSHAKE}\r\n`,
    );
    expect(statuses, text).toEqual([503]);
    expect(text).not.toContain('secret');
    for (const socket of behind) await untilClosed(socket);
  });
});
