import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { newCertificate } from '../../fixtures/certificate.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, sendRaw } from '../../fixtures/raw.ts';
import { startTcpUpstream } from '../../fixtures/tcp-upstream.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

let gateway: TestGateway;

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';

const NO_UPSTREAM: TestUpstream = { url: '', seen: [], close: async () => {} };

async function start(upstream: TestUpstream, settings: Record<string, unknown> = {}, url = upstream.url) {
  gateway = await startGateway({ upstream, upstreamUrl: url, settings: { upstream: { url, ...settings } } });
  onTestFinished(() => gateway.close());
}

async function detailOf(method = 'GET', at = gateway): Promise<string> {
  const answer = await at.send(method, '/v3/things', method === 'GET' ? {} : { body: '{}' });
  const text = await answer.text();
  expect(answer.status, text).toBe(503);
  expect(answer.headers.get('Retry-After')).toBeNull();
  expect(text).not.toMatch(/127\.0\.0\.1|invalid|E[A-Z]{5}|UND_|:\d{4}/);
  expect(JSON.parse(text)).toMatchObject({ code: 'ServiceUnavailable', status: 503 });
  return (JSON.parse(text) as { detail: string }).detail;
}

describe('the client always gets the same text, without addresses', () => {
  it('when the name of the upstream cannot be resolved', async () => {
    await start(NO_UPSTREAM, {}, 'http://nowhere.invalid');
    expect(await detailOf()).toBe('The service behind the gateway cannot be reached.');
  });

  it('when a connection takes too long', async () => {
    // It accepts, and never says a word of TLS.
    const upstream = await startTcpUpstream(() => {});
    await start(upstream, { connectTimeoutMs: 50 }, upstream.url.replace('http', 'https'));
    expect(await detailOf()).toBe('The service behind the gateway cannot be reached.');
  });

  it('when the response header takes too long', async () => {
    const upstream = await startTcpUpstream(() => {});
    await start(upstream, { headersTimeoutMs: 50 });
    expect(await detailOf('POST')).toBe('The service behind the gateway did not answer in time.');
  });
});

describe('the client gets the same text, without addresses, when the response', () => {
  let bytes: string;
  let shared: TestGateway;
  beforeAll(async () => {
    const upstream = await startTcpUpstream((socket) =>
      socket.once('data', () => socket.write(bytes, 'latin1')),
    );
    shared = await startGateway({ upstream });
  });
  afterAll(() => shared.close());

  it.each([
    ['is no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['has two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    [
      'has a length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['has an endless header', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(40_000)}\r\n\r\n`],
    ['is coded for the transfer', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['has a control octet in a value', 'HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n'],
    ['folds its header', 'HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\nContent-Length: 0\r\n\r\n'],
    ['has an invalid status', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'],
    [
      'switches protocols unasked',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    ],
    ['is interim without end', 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(40)],
  ])('%s', async (_, sent) => {
    bytes = sent;
    expect(await detailOf('GET', shared)).toBe('The service behind the gateway did not answer.');
  });
});

it('a pause within a body aborts it, and the client sees that it is truncated', async () => {
  const upstream = await startUpstream((_request, response) => {
    response.write('half');
  });
  await start(upstream, { bodyTimeoutMs: 50 });
  const answer = await gateway.send('GET', '/v3/things');
  expect(answer.status).toBe(200);
  await expect(answer.text()).rejects.toThrow();
});

it('chunks that end too early are seen as cut short', async () => {
  await start(
    await startTcpUpstream((socket) =>
      socket.once('data', () =>
        socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'),
      ),
    ),
  );
  const answer = await gateway.send('GET', '/v3/things');
  await expect(answer.text()).rejects.toThrow();
});

it('a response that is malformed behind its head is cut short, and not an empty reply', async () => {
  const bytes = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nno size\r\n';
  await start(await startTcpUpstream((socket) => socket.once('data', () => socket.write(bytes))));
  const answer = await sendRaw(gateway.url, `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`);
  expect(answer.statuses).toEqual([200]);
  expect(answer.text).not.toMatch(/\r\n0\r\n\r\n$/);
});

it('a client of HTTP/1.0 learns from a reset that a body without a length is cut short', async () => {
  const bytes = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n';
  let behind: Socket | undefined;
  await start(
    await startTcpUpstream((socket) => {
      behind = socket;
      socket.once('data', () => socket.write(bytes));
    }),
  );
  const client = await connectRaw(gateway.url);
  const broken = new Promise<NodeJS.ErrnoException>((resolve) => client.once('error', resolve));
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.write(`GET /v3/things HTTP/1.0\r\n${HEAD}\r\n`);
  await once(client, 'data');
  behind?.destroy();
  expect(await Promise.race([broken, closed])).toMatchObject({ code: 'ECONNRESET' });
});

it('bytes behind an answer are not taken for the next one', async () => {
  const requests: string[] = [];
  const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  await start(
    await startTcpUpstream((socket) =>
      socket.on('data', (chunk) => {
        requests.push(chunk.toString());
        socket.write(`${answer}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`);
      }),
    ),
    { connections: 1 },
  );
  for (let count = 0; count < 5; count++) {
    expect(await (await gateway.send('GET', '/v3/things')).text()).toBe('ok');
  }
  expect(requests).toHaveLength(5);
});

/** A server with TLS that nobody trusts. @returns its URL */
async function startUntrusted(): Promise<string> {
  const { certFile, keyFile } = newCertificate();
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
  server.on('tlsClientError', () => {}).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `https://127.0.0.1:${(server.address() as { port: number }).port}`;
}

/** A server that accepts each connection and ends it. @returns its URL */
async function startEnding(end: (socket: Socket) => void): Promise<string> {
  const upstream = await startTcpUpstream(end);
  onTestFinished(() => upstream.close());
  return upstream.url;
}

describe('a request that could not be sent', () => {
  it.each([
    ['refuses the connection', async () => 'http://127.0.0.1:1'],
    ['has a certificate that is not trusted', startUntrusted],
    [
      'ends the TLS handshake',
      async () => (await startEnding((socket) => socket.end())).replace('http', 'https'),
    ],
    [
      'resets the TLS handshake',
      async () => (await startEnding((socket) => socket.resetAndDestroy())).replace('http', 'https'),
    ],
  ])('gets its points back when the upstream %s', async (_, startBehind) => {
    await start(NO_UPSTREAM, {}, await startBehind());
    await detailOf();
    const answer = await gateway.send('GET', '/v3/things');
    expect(answer.headers.get('RateLimit')).toContain('"account-read";r=19');
    await detailOf('POST');
  });

  it('keeps its charge when the upstream has accepted the connection: it may have read the request', async () => {
    await start(NO_UPSTREAM, {}, await startEnding((socket) => socket.once('data', () => socket.destroy())));
    await detailOf();
    const answer = await gateway.send('GET', '/v3/things');
    expect(answer.headers.get('RateLimit')).toContain('"account-read";r=18');
  });
});

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Each connection answers its first request and closes upon its second, as if it had just been closed as idle. */
const closingOnReuse = (requests: string[]) => (socket: Socket, count: number) => {
  let isUsed = false;
  socket.on('data', (chunk) => {
    requests.push(`${count} ${chunk.toString().slice(0, 4).trim()}`);
    if (isUsed) socket.resetAndDestroy();
    else socket.write(OK);
    isUsed = true;
  });
};

describe('a connection that the upstream closed while it was idle', () => {
  it('costs a GET one more try, and no second charge', async () => {
    const requests: string[] = [];
    await start(await startTcpUpstream(closingOnReuse(requests)), { connections: 1 });
    await gateway.send('GET', '/v3/things');
    const answer = await gateway.send('GET', '/v3/things');
    expect([answer.status, await answer.text()]).toEqual([200, 'ok']);
    expect(answer.headers.get('RateLimit')).toContain('"account-read";r=18');
    expect(requests).toEqual(['1 GET', '1 GET', '2 GET']);
  });

  it('is a 503 to a POST: the upstream may have done the work', async () => {
    const requests: string[] = [];
    await start(await startTcpUpstream(closingOnReuse(requests)), { connections: 1 });
    await gateway.send('POST', '/v3/things', { body: '{}' });
    await detailOf('POST');
    expect(requests).toEqual(['1 POST', '1 POST']);
  });
});

it('a request on a new connection that is reset is not retried', async () => {
  let count = 0;
  await start(
    await startTcpUpstream((socket) => {
      count++;
      socket.once('data', () => socket.resetAndDestroy());
    }),
  );
  await detailOf();
  expect(count).toBe(1);
});
