import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { sendRaw, sendRawToNode } from '../../fixtures/raw.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';
import type { TestUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
/** Past Node's own cut of 1,000 pairs, in far fewer bytes than a header may have. */
const MANY = 'a:\r\n'.repeat(1_100);
/** Until the head has been read without the body. */
const LATER_MS = 50;
const CHUNKED = 'Transfer-Encoding: chunked';
const CHUNKS = '4\r\nbody\r\n0\r\n\r\n';
const LENGTH = 'Content-Length: 4';
const SECOND = `GET /v3/smuggled HTTP/1.1\r\n${HEAD}\r\n`;

let gateway: TestGateway;
afterEach(() => gateway.close());

const HIDDEN: readonly (readonly [what: string, bytes: string])[] = [
  ['Content-Length', `POST /v3/things HTTP/1.1\r\n${HEAD}${MANY}Content-Length: 5\r\n\r\nhello`],
  [
    'Transfer-Encoding',
    `POST /v3/things HTTP/1.1\r\n${HEAD}${MANY}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  ],
  ['X-Service-Account', `GET /v3/things HTTP/1.1\r\n${HEAD}${MANY}X-Service-Account: acct_9\r\n\r\n`],
  ['Idempotency-Key', `POST /v3/things HTTP/1.1\r\n${HEAD}${MANY}Idempotency-Key: k\r\n\r\n`],
  ['a second Host', `GET /v3/things HTTP/1.1\r\n${HEAD}${MANY}Host: other\r\n\r\n`],
  [
    'the Content-Length of an upgrade',
    `POST /v3/things HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: foo\r\n${MANY}Content-Length: ${SECOND.length}\r\n\r\n${SECOND}`,
  ],
  [
    'the Content-Length of a WebSocket',
    `GET /v3/things HTTP/1.1\r\n${HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\n${MANY}Content-Length: ${SECOND.length}\r\n\r\n${SECOND}`,
  ],
  [
    'a body that is announced with Expect',
    `POST /v3/things HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\n${MANY}Content-Length: 5\r\n\r\nhello`,
  ],
];

describe('a field after the maximum number of fields', () => {
  it.each(HIDDEN)('%s: 431, closed, uncharged, unseen by the upstream', async (_, bytes) => {
    gateway = await startGateway();
    const answer = await sendRaw(gateway.url, bytes);
    expect(answer.statuses).toEqual([431]);
    expect(answer.text).toMatch(/^Connection: close\r$/m);
    expect(answer.text).not.toContain('RateLimit');
    expect(gateway.upstream.seen).toEqual([]);
  });
});

describe('more than the maximum number of fields', () => {
  const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}`;
  const NAMES = Array.from({ length: 2_000 }, (_, index) => `x${index}`);
  const LINES = NAMES.map((name) => `${name}:\r\n`).join('');

  it.each([
    ['of different names', 431, `${GET}${LINES}\r\n`],
    ['behind which the head does not end', 431, `${GET}${LINES}`],
    ['that are one field in folded lines', 400, `${GET}a: b\r\n${' c\r\n'.repeat(200)}\r\n`],
    ['named by Connection', 431, `${GET}Connection: ${NAMES.join(',')}\r\n\r\n`],
    ['named by lines of Connection', 431, `${GET}${'Connection: a, b\r\n'.repeat(80)}\r\n`],
  ])('%s: %i, closed, unseen by the upstream', async (_, status, bytes) => {
    gateway = await startGateway();
    const { statuses, text } = await sendRaw(gateway.url, bytes);
    expect(statuses).toEqual([status]);
    expect(text).toMatch(/^Connection: close\r$/m);
    expect(gateway.upstream.seen).toEqual([]);
  });

  it('among the trailers: 431, closed', async () => {
    gateway = await startGateway();
    const chunks = `1\r\nx\r\n0\r\n${LINES}\r\n`;
    const bytes = `POST /v3/things HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunks}`;
    const { statuses, text } = await sendRaw(gateway.url, bytes);
    expect(statuses).toEqual([431]);
    expect(text).toMatch(/^Connection: close\r$/m);
  });

  it('at the admin port: 431', async () => {
    gateway = await startGateway();
    const bytes = `GET /livez HTTP/1.1\r\nHost: weir\r\n${MANY}\r\n`;
    expect((await sendRaw(gateway.adminUrl, bytes)).statuses).toEqual([431]);
  });
});

it('the limit is a setting, and counts each line', async () => {
  gateway = await startGateway({ settings: { listen: { host: '127.0.0.1', port: 0, maxHeaderFields: 5 } } });
  const request = (fields: string) => `GET /v3/things HTTP/1.1\r\n${HEAD}Connection: close\r\n${fields}\r\n`;
  expect((await sendRaw(gateway.url, request('a: 1\r\na: 1\r\n'))).statuses).toEqual([200]);
  expect((await sendRaw(gateway.url, request('a: 1\r\na: 1\r\na: 1\r\n'))).statuses).toEqual([431]);
});

it('a limit above what Node would keep loses nothing', async () => {
  gateway = await startGateway({
    upstream: await startCounting(),
    limits: PLENTY,
    settings: { listen: { host: '127.0.0.1', port: 0, maxHeaderFields: 3_000, maxHeaderBytes: 65_536 } },
  });
  const answer = await sendRaw(
    gateway.url,
    `POST /v3/things HTTP/1.1\r\n${HEAD}Connection: close\r\n${'a: b\r\n'.repeat(2_500)}Content-Length: 5\r\n\r\nhello`,
  );
  expect(answer.text).toContain('2500 fields, hello');
});

describe.each([
  ['the edge', sendRaw, 'Connection: keep-alive'],
  ["Node's server", sendRawToNode, 'Connection: close'],
])('octets above 127 arrive as they are, read by %s', (_, send, connection) => {
  const LATIN1 = 'attachment; filename="caf\xe9"';
  const UTF8 = 'attachment; filename="caf\xc3\xa9 \xe2\x80\x94"';

  it.each([
    ['in front of chunks that come later', [`A: ${LATIN1}`, `B: ${UTF8}`, CHUNKED], LATER_MS, CHUNKS],
    ['in front of a body that comes later', [`A: ${LATIN1}`, `B: ${UTF8}`, LENGTH], LATER_MS, 'body'],
    ['in latin1 behind the length', [LENGTH, `Content-Disposition: ${LATIN1}`], 0, 'body'],
    ['in UTF-8 behind the length', [LENGTH, `Content-Disposition: ${UTF8}`], 0, 'body'],
  ])('%s', async (__, lines, delayMs, body) => {
    const upstream = await startTcpUpstream((socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1');
        if (delayMs === 0) socket.write(body);
        else setTimeout(() => socket.write(body), delayMs);
      });
    });
    const listen = { host: '127.0.0.1', port: 0, keepAliveTimeoutMs: 500 };
    gateway = await startGateway({ upstream, settings: { listen } });
    const { text } = await send(gateway.url, `GET /v3/things HTTP/1.1\r\n${HEAD}${connection}\r\n\r\n`);
    expect(text.split('\r\n')).toEqual(expect.arrayContaining(['HTTP/1.1 200 OK', ...lines]));
    expect(text).toContain('body');
  });
});

/** Answers with the number of fields named `a` that reached it, and the body. */
async function startCounting(): Promise<TestUpstream> {
  const server = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
    const count = request.rawHeaders.filter((word, index) => index % 2 === 0 && word === 'a').length;
    void request.toArray().then((chunks) => response.end(`${count} fields, ${Buffer.concat(chunks)}`));
  });
  server.maxHeadersCount = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: [],
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
