import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Pool } from '../../../src/http/client/pool.ts';
import { makeCertificate } from '../../fixtures/certificate.ts';
import { type RawServer, startRawServer } from '../../fixtures/raw-server.ts';
import { Call } from '../../fixtures/upstream-call.ts';

const LIMITS = {
  connections: 4,
  connectTimeoutMs: 20_000,
  headersTimeoutMs: 20_000,
  bodyTimeoutMs: 20_000,
  keepAliveTimeoutMs: 20_000,
};
const TOO_LONG = 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo long';
const PIECE = Buffer.alloc(100_000, 'x');

const folder = mkdtempSync(join(tmpdir(), 'weir-early-'));
const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
beforeAll(() => makeCertificate(certFile, keyFile));
afterAll(() => rmSync(folder, { recursive: true }));

let server: RawServer;
let pool: Pool;
afterEach(async () => {
  pool.destroy();
  await server.close();
});

/** @param onRequest called with the first bytes of each connection; `carrier` is the TCP connection below TLS */
async function start(isSecure: boolean, onRequest: (socket: Socket, carrier: Socket, count: number) => void) {
  const tls = isSecure
    ? createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) })
    : undefined;
  server = await startRawServer((carrier, count) => {
    const begin = (socket: Socket) =>
      socket.on('error', () => {}).once('data', () => onRequest(socket, carrier, count));
    if (tls === undefined) begin(carrier);
    else tls.once('secureConnection', begin).emit('connection', carrier);
  });
  const url = new URL(server.url.replace('http:', isSecure ? 'https:' : 'http:'));
  pool = new Pool(url, LIMITS, isSecure ? { verify: true, ca: readFileSync(certFile) } : undefined);
}

/** How an upstream goes. `onGone` is called before this process can have read what was sent before. */
const ENDS: Readonly<Record<string, (socket: Socket, carrier: Socket, onGone: () => void) => void>> = {
  'resets the connection': (_, carrier, onGone) => {
    carrier.once('close', onGone).resetAndDestroy();
  },
  'closes the connection': (_, carrier, onGone) => {
    carrier.once('close', onGone).destroy();
  },
  'ends its side and closes': (socket, carrier, onGone) => {
    socket.end(() => carrier.once('close', onGone).destroy());
  },
};

/** Sends the beginning of an upload. The upstream answers and goes; then more is written, which fails. */
async function uploadTo(
  answer: string,
  end: string,
  {
    isSecure = false,
    bodyLength,
  }: { readonly isSecure?: boolean; readonly bodyLength?: number | undefined } = {},
) {
  const body = new PassThrough();
  await start(isSecure, (socket, carrier) => {
    const writeMore = () => {
      for (let count = 0; count < 5; count++) body.write(PIECE);
    };
    socket.write(answer, 'latin1', () => ENDS[end]?.(socket, carrier, writeMore));
  });
  body.write(PIECE);
  return { upload: new Call(pool, { method: 'POST', body, bodyLength }), body };
}

const CASES = Object.keys(ENDS).flatMap((end) =>
  [false, true].flatMap((isSecure) => [
    { end, isSecure, bodyLength: undefined, title: `${isSecure ? 'TLS' : 'TCP'}, in chunks` },
    { end, isSecure, bodyLength: 100 * PIECE.length, title: `${isSecure ? 'TLS' : 'TCP'}, with a length` },
  ]),
);

describe('an early answer is read, though the upstream', () => {
  it.each(CASES)('$end: $title', async ({ end, isSecure, bodyLength }) => {
    const { upload, body } = await uploadTo(TOO_LONG, end, { isSecure, bodyLength });
    const result = await upload.ended;
    expect(result).toMatchObject({ head: { status: 413 }, body: 'too long', error: undefined });
    expect(body.destroyed).toBe(true);
    await expect.poll(() => server.open.size, { interval: 5 }).toBe(0);
  });

  it('resets the connection behind an interim response', async () => {
    const { upload } = await uploadTo(`HTTP/1.1 103 Early Hints\r\n\r\n${TOO_LONG}`, 'resets the connection');
    expect(await upload.ended).toMatchObject({
      interim: [{ status: 103 }],
      head: { status: 413 },
      body: 'too long',
    });
  });

  it('resets the connection while its answer is read slowly', async () => {
    const length = 40_000;
    const answer = `HTTP/1.1 413 Content Too Large\r\nContent-Length: ${length}\r\n\r\n${'a'.repeat(length)}`;
    const { upload } = await uploadTo(answer, 'resets the connection');
    await expect.poll(() => upload.body.length, { interval: 1 }).toBeGreaterThan(0);
    upload.transfer?.pause();
    setImmediate(() => upload.transfer?.resume());
    expect(await upload.ended).toMatchObject({ body: 'a'.repeat(length), error: undefined });
  });

  it('resets the connection, and the body is in one piece', async () => {
    await start(false, (socket, carrier) => {
      socket.write(TOO_LONG, () => carrier.resetAndDestroy());
    });
    const upload = new Call(pool, { method: 'PUT', body: Buffer.alloc(64 << 20) });
    expect(await upload.ended).toMatchObject({ head: { status: 413 }, body: 'too long', error: undefined });
  });
});

describe('an answer that the closing of the connection ends', () => {
  const UNTIL_CLOSE = 'HTTP/1.0 413 Content Too Large\r\n\r\ntoo long';

  it('is whole if the upstream ended its side first', async () => {
    const { upload } = await uploadTo(UNTIL_CLOSE, 'ends its side and closes');
    expect(await upload.ended).toMatchObject({ body: 'too long', error: undefined });
  });

  it('is cut short by a reset', async () => {
    const { upload } = await uploadTo(UNTIL_CLOSE, 'resets the connection');
    expect(await upload.ended).toMatchObject({ head: { status: 413 }, error: 'ECONNRESET', repeat: 'none' });
  });
});

it('without an answer, the error is the one of the upload, and the request is not sent again', async () => {
  const { upload, body } = await uploadTo('', 'resets the connection');
  const result = await upload.ended;
  expect(result).toMatchObject({ head: undefined, repeat: 'none' });
  expect(result.error).toMatch(/^(ECONNRESET|EPIPE)$/);
  expect(body.destroyed).toBe(true);
});

it('an answer without its end is an error', async () => {
  const { upload } = await uploadTo(TOO_LONG.slice(0, -1), 'resets the connection');
  expect(await upload.ended).toMatchObject({ head: { status: 413 }, error: 'ECONNRESET', repeat: 'none' });
});
