import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, untilClosed } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const NOBODY = 'Host: weir\r\nAuthorization: Bearer nobody\r\n';
const MEGABYTE = Buffer.alloc(1 << 20, 'x');

let gateway: TestGateway;
beforeAll(async () => {
  // It reads nothing of what goes to /v3/things/early, and answers at once.
  const upstream = await startUpstream((incoming, response) => {
    if (incoming.url === '/v3/things/early') {
      response.writeHead(409, { 'Content-Length': '5' });
      response.end('early');
      return;
    }
    incoming.resume().once('end', () => response.end('read'));
  });
  gateway = await startGateway({
    upstream,
    limits: PLENTY,
    settings: { listen: { host: '127.0.0.1', port: 0, maxBodyBytes: 4 << 20 } },
  });
});
afterAll(() => gateway.close());

/** Sends a header, then a body for as long as it is taken, and gives what comes back until the connection closes. */
async function uploadUntilClosed(header: string, frame: (chunk: Buffer) => Buffer, chunks: number) {
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(header);
  for (let count = 0; count < chunks && !socket.destroyed; count++) {
    if (!socket.write(frame(MEGABYTE))) await Promise.race([once(socket, 'drain'), answer]).catch(() => {});
  }
  return answer;
}

const asChunk = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const asIs = (bytes: Buffer) => bytes;

describe('a long upload', () => {
  it.each([
    [
      'without a good token',
      `POST /v3/things HTTP/1.1\r\n${NOBODY}Content-Length: 4000000\r\n\r\n`,
      asIs,
      401,
    ],
    [
      'for a foreign Account',
      `POST /v3/things HTTP/1.1\r\n${HEAD}X-Service-Account: acct_4\r\nTransfer-Encoding: chunked\r\n\r\n`,
      asChunk,
      403,
    ],
    [
      'that says it is too long',
      `POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 99000000\r\n\r\n`,
      asIs,
      413,
    ],
    [
      'that turns out too long',
      `POST /v3/things HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`,
      asChunk,
      413,
    ],
    [
      'that the upstream answers early',
      `POST /v3/things/early HTTP/1.1\r\n${HEAD}Content-Length: 4000000\r\n\r\n`,
      asIs,
      409,
    ],
  ])('%s has its answer before the connection closes', async (_, header, frame, status) => {
    const answer = await uploadUntilClosed(header, frame, 3 + (status === 413 ? 5 : 0));
    expect(answer.statuses).toEqual([status]);
    expect(answer.text).toMatch(/^Connection: close\r$/m);
  });

  it('that is too long by its Content-Length is never charged', async () => {
    const answer = await uploadUntilClosed(
      `POST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 99000000\r\n\r\n`,
      asIs,
      1,
    );
    expect(answer.text).toContain('"code":"PayloadTooLarge"');
    expect(answer.text).not.toContain('RateLimit');
  });
});

it('a short upload that is refused leaves the connection usable', async () => {
  const socket = await connectRaw(gateway.url);
  const answer = untilClosed(socket);
  socket.write(
    `POST /v3/things HTTP/1.1\r\n${NOBODY}Content-Length: 4\r\n\r\nbodyPOST /v3/things HTTP/1.1\r\n${HEAD}Content-Length: 4\r\n\r\n`,
  );
  socket.write('body');
  socket.write(`GET /v3/things HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`);
  expect((await answer).statuses).toEqual([401, 200, 200]);
});

describe('with Expect: 100-continue', () => {
  const expecting = (head: string) =>
    `POST /v3/things HTTP/1.1\r\n${head}Expect: 100-continue\r\nContent-Length: 4\r\n\r\n`;

  it('an admitted request gets a 100, and its body arrives', async () => {
    const socket = await connectRaw(gateway.url);
    socket.write(expecting(`${HEAD}Connection: close\r\n`));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    const answer = untilClosed(socket);
    socket.write('body');
    expect((await answer).statuses).toEqual([200]);
    expect(gateway.upstream.seen.at(-1)?.headers.expect).toBeUndefined();
  });

  it.each([
    ['401', NOBODY, 401],
    ['403', `${HEAD}X-Service-Account: acct_4\r\n`, 403],
    ['400', `${HEAD}${HEAD}`, 400],
  ])('a request that is refused with %s gets no 100 first', async (_, head, status) => {
    const socket = await connectRaw(gateway.url);
    socket.write(expecting(head));
    expect((await untilClosed(socket)).statuses).toEqual([status]);
  });

  it('a request that the upstream cannot accept gets no 100 first', async () => {
    const gone = await startUpstream();
    await gone.close();
    const alone = await startGateway({ upstreamUrl: gone.url });
    const socket = await connectRaw(alone.url);
    socket.write(expecting(HEAD));
    expect((await untilClosed(socket)).statuses).toEqual([503]);
    await alone.close();
  });
});
