import type { Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { Pool } from '../../../src/http/client/pool.ts';
import { type UpstreamRequest, writeRequestHead } from '../../../src/http/client/request.ts';
import { FieldLines } from '../../../src/http/message/head/field-lines.ts';
import { type RawServer, startRawServer } from '../../fixtures/raw-server.ts';
import { Call, call } from '../../fixtures/upstream-call.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

const handler = {} as UpstreamRequest['handler'];
const headOf = ({
  fields = [],
  ...request
}: Partial<UpstreamRequest> & { readonly fields?: readonly string[] }) => {
  const lines = FieldLines.of(fields);
  return writeRequestHead({ method: 'GET', target: '/', lines, body: null, handler, ...request }, 'a:1');
};

describe('the head', () => {
  it('has Host first, the fields in their order, and what frames the body last', () => {
    const fields = ['X-A', '1', 'x-b', 'caf\xe9', 'X-A', '2', 'X-C', ''];
    expect(headOf({ method: 'PUT', target: '/a?b', fields, body: Buffer.from('five!') })).toBe(
      'PUT /a?b HTTP/1.1\r\nHost: a:1\r\nX-A: 1\r\nx-b: caf\xe9\r\nX-A: 2\r\nX-C: \r\nContent-Length: 5\r\n\r\n',
    );
  });

  it.each([
    ['a GET without a body', { method: 'GET' }, ''],
    ['a DELETE without a body', { method: 'DELETE' }, ''],
    ['a POST without a body', { method: 'POST' }, 'Content-Length: 0\r\n'],
    ['a stream of a stated length', { body: Readable.from([]), bodyLength: 7 }, 'Content-Length: 7\r\n'],
    ['a stream of unknown length', { body: Readable.from([]) }, 'Transfer-Encoding: chunked\r\n'],
  ])('of %s', (_, request, framing) => {
    expect(headOf({ method: 'GET', ...request })).toBe(
      `${'method' in request ? request.method : 'GET'} / HTTP/1.1\r\nHost: a:1\r\n${framing}\r\n`,
    );
  });

  it.each([
    ['a line break in a value', { fields: ['X-A', 'a\r\nX-B: b'] }],
    ['a carriage return in a value', { fields: ['X-A', 'a\rb'] }],
    ['a line feed in a value', { fields: ['X-A', 'a\nb'] }],
    ['a NUL in a value', { fields: ['X-A', 'a\0b'] }],
    ['a character beyond latin1 whose last octet is a line feed', { fields: ['X-A', 'a\u010ab'] }],
    ['a line break in a name', { fields: ['X-A: a\r\nX-B', 'b'] }],
    ['a space in a name', { fields: ['X A', 'b'] }],
    ['an empty name', { fields: ['', 'b'] }],
    ['a name without a value that could be one', { fields: ['X-A', '\u2028'] }],
    ['a space in the target', { target: '/a HTTP/1.1\r\n' }],
    ['an empty target', { target: '' }],
    ['a line break in the method', { method: 'GET / HTTP/1.1\r\n' }],
    ['a second Host', { fields: ['Host', 'b'] }],
    ['a length', { fields: ['content-length', '1'] }],
    ['a coding', { fields: ['Transfer-Encoding', 'chunked'] }],
  ])('with %s is never written', (_, request) => {
    expect(() => headOf(request)).toThrow(expect.objectContaining({ code: 'UPSTREAM_UNSENDABLE' }));
  });
});

describe('a request', () => {
  let server: RawServer;
  let pool: Pool;
  let received = '';
  afterEach(async () => {
    pool.destroy();
    await server.close();
  });

  async function start(onText: (socket: Socket) => void): Promise<void> {
    received = '';
    server = await startRawServer((socket) => {
      socket.on('data', (bytes) => {
        received += bytes.toString('latin1');
        onText(socket);
      });
    });
    pool = new Pool(new URL(server.url), {
      connections: 1,
      connectTimeoutMs: 20_000,
      headersTimeoutMs: 20_000,
      bodyTimeoutMs: 20_000,
      keepAliveTimeoutMs: 20_000,
    });
  }

  const answerAfter = (end: string) => (socket: Socket) => {
    if (received.endsWith(end)) socket.write(OK);
  };

  it.each([
    ['in one piece', Buffer.from('hello'), undefined, 'Content-Length: 5\r\n\r\nhello'],
    [
      'as a stream',
      () => Readable.from([Buffer.from('hel'), Buffer.from('lo')]),
      5,
      'Content-Length: 5\r\n\r\nhello',
    ],
    [
      'in chunks',
      () => Readable.from([Buffer.from('hello'), Buffer.alloc(0), Buffer.from(' world, once more')]),
      undefined,
      'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n11\r\n world, once more\r\n0\r\n\r\n',
    ],
  ])('carries its body %s', async (_, body, bodyLength, end) => {
    await start(answerAfter(end));
    for (let count = 0; count < 2; count++) {
      const result = await call(pool, {
        method: 'POST',
        body: typeof body === 'function' ? body() : body,
        bodyLength,
      });
      expect(result, received).toMatchObject({ head: { status: 200 }, error: undefined });
      expect(received).toMatch(/^POST \/ HTTP\/1\.1\r\n/);
      expect(received.endsWith(end)).toBe(true);
      received = '';
    }
    expect(server.connectionCount).toBe(1);
  });

  it.each([
    ['longer', 4],
    ['shorter', 6],
  ])('whose body is %s than it says ends its connection', async (_, bodyLength) => {
    await start(() => {});
    const body = Readable.from([Buffer.from('hello')]);
    const result = await call(pool, { method: 'POST', body, bodyLength });
    expect(result.error).toBe('UPSTREAM_UNSENDABLE');
    await expect.poll(() => server.open.size, { interval: 5 }).toBe(0);
    expect(received).not.toContain('hello'.repeat(2));
  });

  it('whose body breaks off ends with that error, and its connection with it', async () => {
    await start(() => {});
    const body = new PassThrough();
    const { ended } = new Call(pool, { method: 'POST', body });
    body.write('some');
    await expect.poll(() => received, { interval: 5 }).toContain('some');
    body.destroy(new Error('the client went away'));
    expect((await ended).error).toBe('the client went away');
    await expect.poll(() => server.open.size, { interval: 5 }).toBe(0);
    expect(received).not.toContain('0\r\n\r\n');
  });

  it('reads nothing of its body before there is a connection', async () => {
    await start(answerAfter('0\r\n\r\n'));
    const first = new Call(pool);
    const body = new PassThrough();
    let isRead = false;
    body.once('resume', () => {
      isRead = true;
    });
    body.end('x');
    const second = new Call(pool, { method: 'POST', body });
    await expect.poll(() => received, { interval: 5 }).toContain('GET /');
    expect(isRead).toBe(false);
    first.transfer?.abort();
    expect(await second.ended).toMatchObject({ head: { status: 200 } });
  });
});
