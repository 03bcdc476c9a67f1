import { once } from 'node:events';
import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Pool } from '../../../src/http/client/pool.ts';
import { answering, type RawServer, startRawServer } from '../../fixtures/raw-server.ts';
import { Call, call } from '../../fixtures/upstream-call.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

let server: RawServer;
let pool: Pool;
afterEach(async () => {
  pool.destroy();
  await server.close();
});

async function start(onConnection: (socket: Socket, count: number) => void, settings = {}): Promise<void> {
  server = await startRawServer(onConnection);
  pool = new Pool(new URL(server.url), {
    connections: 4,
    connectTimeoutMs: 20_000,
    headersTimeoutMs: 20_000,
    bodyTimeoutMs: 20_000,
    keepAliveTimeoutMs: 20_000,
    ...settings,
  });
}

/** The bodies of some requests, one after the other. */
async function bodies(count: number): Promise<string[]> {
  const seen: string[] = [];
  for (let done = 0; done < count; done++) seen.push((await call(pool)).body);
  return seen;
}

describe('one connection carries any number of requests', () => {
  it.each([
    ['with a length', OK, 'ok'],
    ['without a body', 'HTTP/1.1 204 No Content\r\n\r\n', ''],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', 'ok'],
    ['behind interim ones', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}`, 'ok'],
  ])('whose responses end exactly: %s', async (_, answer, body) => {
    await start(answering(answer));
    expect(await bodies(5)).toEqual(Array(5).fill(body));
    expect(server.connectionCount).toBe(1);
  });
});

describe('a connection carries no further request', () => {
  it.each([
    ['when bytes follow the response', `${OK}!`],
    ['when a whole second response follows', `${OK}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`],
    ['when a 204 has a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok'],
    ['when bytes follow the last chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n0'],
    ['when the upstream says so', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'],
    ['when it says so among other options', `${OK.replace('\r\n', '\r\nConnection: x, Close\r\n')}`],
    ['when it speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['when it will not be kept', `${OK.replace('\r\n', '\r\nKeep-Alive: timeout=1\r\n')}`],
  ])('%s', async (_, answer) => {
    await start(answering(answer));
    const results = await bodies(3);
    expect(results.every((body) => body === 'ok' || body === '')).toBe(true);
    expect(server.connectionCount).toBe(3);
    await expect.poll(() => server.open.size, { interval: 5 }).toBe(0);
  });

  it('when the upstream sends unrequested data', async () => {
    await start(answering(OK));
    await call(pool);
    const [socket] = server.open;
    socket?.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n');
    if (socket !== undefined) await once(socket, 'close');
    expect(await call(pool)).toMatchObject({ body: 'ok', head: { status: 200 } });
    expect(server.connectionCount).toBe(2);
  });

  it('when the upstream has closed its side', async () => {
    let closed: Promise<unknown> | undefined;
    await start((socket) => {
      closed = once(socket, 'finish');
      socket.once('data', () => socket.end(OK));
    });
    for (let count = 0; count < 20; count++) {
      expect(await call(pool)).toMatchObject({ body: 'ok', error: undefined });
      // The end has arrived; nothing says that it has been read.
      await closed;
      await nextTurn();
    }
    expect(server.connectionCount).toBe(20);
  });

  it('when the response came before the whole request', async () => {
    const TOO_LONG = 'HTTP/1.1 413 Too Long\r\nContent-Length: 0\r\n\r\n';
    await start((socket, count) => answering(count === 1 ? TOO_LONG : OK)(socket));
    const body = new PassThrough();
    body.write('the beginning');
    const early = await call(pool, { method: 'POST', body, bodyLength: 1_000 });
    expect(early).toMatchObject({ head: { status: 413 }, error: undefined });
    expect(body.destroyed).toBe(true);
    expect((await call(pool)).body).toBe('ok');
    expect(server.connectionCount).toBe(2);
  });

  it('when its request was aborted', async () => {
    await start((socket, count) =>
      socket.once('data', () => socket.write(count === 1 ? OK.slice(0, -1) : OK)),
    );
    const first = new Call(pool);
    await expect.poll(() => first.body, { interval: 5 }).toBe('o');
    first.transfer?.abort();
    expect((await first.ended).error).toBe('UPSTREAM_ABORTED');
    expect((await call(pool)).body).toBe('ok');
    expect(server.connectionCount).toBe(2);
  });

  it('when it was idle for longer than allowed, though no sweep has seen it', async () => {
    await start(answering(OK), { keepAliveTimeoutMs: 1 });
    await call(pool);
    const before = performance.now();
    while (performance.now() - before < 2);
    await call(pool);
    expect(server.connectionCount).toBe(2);
  });

  it('when it has been open for five minutes, so that a changed address is found', async () => {
    await start(answering(OK), { keepAliveTimeoutMs: 1_000_000 });
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now);
    onTestFinished(() => clock.mockRestore());
    await call(pool);
    clock.mockReturnValue(now + 269_000);
    await call(pool);
    expect(server.connectionCount).toBe(1);
    clock.mockReturnValue(now + 300_000);
    await call(pool);
    expect(server.connectionCount).toBe(2);
  });
});

describe('a request on a connection that breaks', () => {
  it('is marked as stale when that had been used and gave no byte', async () => {
    await start((socket) => {
      socket.once('data', () => {
        socket.write(OK);
        socket.once('data', () => socket.resetAndDestroy());
      });
    });
    expect(await call(pool)).toMatchObject({ error: undefined });
    expect(await call(pool)).toMatchObject({ error: expect.any(String), repeat: 'idempotent' });
  });

  it('is not when the connection was new', async () => {
    await start((socket) => socket.once('data', () => socket.resetAndDestroy()));
    expect(await call(pool)).toMatchObject({ error: 'ECONNRESET', repeat: 'none' });
  });

  it('is not when the response had begun', async () => {
    await start((socket) => {
      socket.once('data', () => {
        socket.write(OK);
        socket.once('data', () => socket.end('HTTP/1.1 200'));
      });
    });
    await call(pool);
    expect(await call(pool)).toMatchObject({ error: 'UPSTREAM_CLOSED', repeat: 'none' });
  });

  /** A connection that has carried one request; the next one begins to be sent when `dispatch` is called. */
  async function used(): Promise<Socket> {
    await start(answering(OK));
    await call(pool);
    const [socket] = server.open;
    if (socket === undefined) throw new Error('the connection was not kept');
    return socket;
  }

  it.each([
    ['GET', null],
    ['POST', null],
    ['POST', Buffer.from('a body')],
  ])('may be repeated if nothing was sent: a %s with %s', async (method, body) => {
    const socket = await used();
    // In the phase in which the request is sent, so that nobody has read the reset.
    setImmediate(() => socket.resetAndDestroy());
    expect(await call(pool, { method, body })).toMatchObject({ error: expect.any(String), repeat: 'any' });
  });

  it.each([
    ['closes', (socket: Socket) => socket.destroy()],
    ['resets the connection', (socket: Socket) => socket.resetAndDestroy()],
    ['sends what nobody asked for', (socket: Socket) => socket.end('HTTP/1.1 408 Request Timeout\r\n\r\n')],
  ])('may be repeated, body and all, if the upstream %s before its head was sent', async (_, end) => {
    const socket = await used();
    const body = new PassThrough();
    for (const piece of ['one', 'two', 'three']) body.write(piece);
    const { ended } = new Call(pool, { method: 'POST', body });
    // After the request has its connection, one turn before its head leaves.
    setImmediate(() => end(socket));
    expect(await ended).toMatchObject({ error: expect.any(String), repeat: 'any', head: undefined });
    body.end('four');
    expect(Buffer.concat(await body.toArray()).toString()).toBe('onetwothreefour');
  });

  it('may be repeated with a body that is whole, and that the failed write had taken', async () => {
    const socket = await used();
    const body = new PassThrough();
    body.end('all of it');
    // Just before the head leaves, so that nobody has read the reset.
    setImmediate(() => setImmediate(() => socket.resetAndDestroy()));
    const { ended } = new Call(pool, { method: 'POST', body });
    expect(await ended).toMatchObject({ error: expect.any(String), repeat: 'any' });
    expect(Buffer.concat(await body.toArray()).toString()).toBe('all of it');
  });

  it('is not if a part of it was sent, whatever its method', async () => {
    await start((socket) => {
      socket.once('data', () => {
        socket.write(OK);
        socket.once('data', () => socket.resetAndDestroy());
      });
    });
    await call(pool);
    const body = new PassThrough();
    body.write('a part');
    const result = await call(pool, { method: 'PUT', body });
    expect(result).toMatchObject({ error: expect.any(String), repeat: 'idempotent' });
    expect(body.destroyed).toBe(true);
  });

  it('gets a new connection where it asks for one, even when all are open', async () => {
    await start(answering(OK), { connections: 1 });
    await call(pool);
    expect((await call(pool, { needsNewConnection: true })).body).toBe('ok');
    expect(server.connectionCount).toBe(2);
  });
});
