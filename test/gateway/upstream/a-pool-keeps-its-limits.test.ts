import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { Pool } from '../../../src/http/client/pool.ts';
import { answering, type RawServer, startRawServer } from '../../fixtures/raw-server.ts';
import { Call, call } from '../../fixtures/upstream-call.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
/** No sweep of the pool's own comes within a test. */
const NEVER_MS = 3_600_000;

let server: RawServer;
let pool: Pool;
afterEach(async () => {
  pool.destroy();
  await server.close();
});

async function start(onConnection: (socket: Socket, count: number) => void, settings = {}): Promise<void> {
  server = await startRawServer(onConnection);
  open(server.url, settings);
}

function open(url: string, settings: Partial<ConstructorParameters<typeof Pool>[1]>): void {
  pool = new Pool(new URL(url), {
    connections: 4,
    connectTimeoutMs: NEVER_MS,
    headersTimeoutMs: NEVER_MS,
    bodyTimeoutMs: NEVER_MS,
    keepAliveTimeoutMs: NEVER_MS,
    ...settings,
  });
}

/** A sweep as it would be so much later. */
const sweepAfter = (ms: number) => pool.sweep(performance.now() + ms);

const LATE_MS = 100_000;
const LIMIT_MS = 60_000;

describe('connections', () => {
  it('are never more than allowed', async () => {
    await start(answering(OK), { connections: 3 });
    const results = await Promise.all(Array.from({ length: 30 }, () => call(pool)));
    expect(results.map(({ body }) => body)).toEqual(Array(30).fill('ok'));
    expect(server.connectionCount).toBe(3);
    expect(pool.inFlight).toBe(0);
  });

  it('serve waiting requests in order', async () => {
    const seen: string[] = [];
    await start(
      (socket) => {
        socket.on('data', (bytes) => {
          seen.push(bytes.toString().split(' ')[1] ?? '');
          socket.write(OK);
        });
      },
      { connections: 1 },
    );
    const targets = Array.from({ length: 30 }, (_, index) => `/${index}`);
    await Promise.all(targets.map((target) => call(pool, { target })));
    expect(seen).toEqual(targets);
  });

  it('that have to be closed are replaced by others', async () => {
    await start(answering(`${OK}surplus`), { connections: 1 });
    await Promise.all(Array.from({ length: 20 }, () => call(pool)));
    expect(server.connectionCount).toBe(20);
  });
});

it('a waiting request can be cancelled, and is never sent', async () => {
  const requests: string[] = [];
  await start(
    (socket) => {
      socket.on('data', (bytes) => requests.push(bytes.toString().slice(0, 6)));
    },
    { connections: 1 },
  );
  const first = new Call(pool, { target: '/1' });
  const second = new Call(pool, { target: '/2' });
  const third = new Call(pool, { target: '/3' });
  await expect.poll(() => requests, { interval: 5 }).toEqual(['GET /1']);
  pool.cancel(second.request);
  expect(pool.inFlight).toBe(2);
  first.transfer?.abort();
  await expect.poll(() => requests, { interval: 5 }).toEqual(['GET /1', 'GET /3']);
  third.transfer?.abort();
  expect(pool.inFlight).toBe(0);
});

it('sends requests that wait in order of arrival, whatever leaves in between', async () => {
  const requests: string[] = [];
  await start(
    (socket) => {
      socket.on('data', (bytes) => {
        requests.push(/^GET (\S+)/.exec(bytes.toString())?.[1] ?? '');
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
    },
    { connections: 1 },
  );
  const leaving = new Set([0, 1, 2, 20, 21, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49]);
  const waiting = Array.from({ length: 50 }, (_, index) => new Call(pool, { target: `/${index}` }));
  const left = waiting.filter((_, index) => leaving.has(index));
  expect(left.every(({ request }) => pool.cancel(request))).toBe(true);
  expect(left.some(({ request }) => pool.cancel(request))).toBe(false);
  const stayed = waiting.filter((_, index) => !leaving.has(index));
  const all = [...stayed, ...[50, 51, 52].map((index) => new Call(pool, { target: `/${index}` }))];
  expect(pool.inFlight).toBe(all.length);
  await Promise.all(all.map(({ ended }) => ended));
  expect(requests).toEqual(all.map(({ request }) => request.target));
  expect(pool.inFlight).toBe(0);
  expect(all.some(({ request }) => pool.cancel(request))).toBe(false);
});

describe('time limits', () => {
  const isOpen = () => expect.poll(() => server.open.size, { interval: 5 }).toBe(1);

  it('for a connection: a TLS upstream that never speaks', async () => {
    server = await startRawServer(() => {});
    open(server.url.replace('http', 'https'), { connectTimeoutMs: LIMIT_MS });
    const { ended } = new Call(pool);
    await isOpen();
    sweepAfter(LATE_MS);
    expect((await ended).error).toBe('UPSTREAM_CONNECT_TIMEOUT');
  });

  it('for a response header', async () => {
    await start((socket) => socket.once('data', () => socket.write('HTTP/1.1 200')), {
      headersTimeoutMs: LIMIT_MS,
    });
    const { ended } = new Call(pool);
    await isOpen();
    // A connection alone is not the beginning of that wait.
    await expect.poll(() => server.open.size, { interval: 5 }).toBe(1);
    sweepAfter(1_000);
    sweepAfter(LATE_MS);
    expect((await ended).error).toBe('UPSTREAM_HEADERS_TIMEOUT');
  });

  it('for a silence within the body', async () => {
    await start(answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'), { bodyTimeoutMs: LIMIT_MS });
    const slow = new Call(pool);
    await expect.poll(() => slow.body, { interval: 5 }).toBe('half');
    sweepAfter(1_000);
    sweepAfter(LATE_MS);
    expect((await slow.ended).error).toBe('UPSTREAM_BODY_TIMEOUT');
  });

  it('for an idle connection, and for one that the upstream keeps for less', async () => {
    await start(answering(OK, OK.replace('\r\n', '\r\nKeep-Alive: timeout=5, max=9\r\n')), {
      keepAliveTimeoutMs: LIMIT_MS,
    });
    await call(pool);
    sweepAfter(LIMIT_MS - 5_000);
    await call(pool);
    expect(server.connectionCount).toBe(1);
    // A second before the upstream itself would close it.
    sweepAfter(4_001);
    await expect.poll(() => server.open.size, { interval: 5 }).toBe(0);
  });

  it('do not count while the client is the slower side', async () => {
    await start(answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'), {
      bodyTimeoutMs: LIMIT_MS,
      headersTimeoutMs: LIMIT_MS,
    });
    const reader = new Call(pool);
    await expect.poll(() => reader.body, { interval: 5 }).toBe('half');
    reader.transfer?.pause();
    const body = new PassThrough();
    body.write('a part');
    const writer = new Call(pool, { method: 'POST', body });
    await expect.poll(() => server.open.size, { interval: 5 }).toBe(2);
    sweepAfter(LATE_MS);
    reader.transfer?.resume();
    body.end();
    sweepAfter(1_000);
    expect(pool.inFlight).toBe(2);
    await expect
      .poll(
        () => {
          sweepAfter(LATE_MS);
          return pool.inFlight;
        },
        { interval: 5 },
      )
      .toBe(0);
    expect((await reader.ended).error).toBe('UPSTREAM_BODY_TIMEOUT');
    await writer.ended;
  });

  it('count while the upstream does not read an upload', async () => {
    await start((socket) => socket.pause(), { headersTimeoutMs: LIMIT_MS });
    const body = new PassThrough();
    const upload = new Call(pool, { method: 'POST', body });
    const fill = () => {
      while (body.write(Buffer.alloc(65_536)));
    };
    body.on('drain', fill);
    fill();
    // Once the buffers in between are full, nothing moves any more.
    await expect
      .poll(
        () => {
          sweepAfter(LATE_MS);
          return pool.inFlight;
        },
        { interval: 50 },
      )
      .toBe(0);
    expect((await upload.ended).error).toBe('UPSTREAM_HEADERS_TIMEOUT');
  });
});

it('a destroyed pool fails requests in progress, waiting and later ones', async () => {
  await start((socket) => socket.resume(), { connections: 1 });
  const calls = [new Call(pool), new Call(pool)];
  await expect.poll(() => server.open.size, { interval: 5 }).toBe(1);
  pool.destroy();
  for (const { ended } of [...calls, new Call(pool)]) expect((await ended).error).toBe('UPSTREAM_ABORTED');
  await expect.poll(() => server.open.size, { interval: 5 }).toBe(0);
  expect(pool.inFlight).toBe(0);
});
