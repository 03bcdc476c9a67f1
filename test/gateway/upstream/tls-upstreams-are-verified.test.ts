import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { TlsOptions } from '../../../src/http/client/connector.ts';
import { Pool } from '../../../src/http/client/pool.ts';
import { makeCertificate } from '../../fixtures/certificate.ts';
import { call } from '../../fixtures/upstream-call.ts';

const folder = mkdtempSync(join(tmpdir(), 'weir-tls-'));
const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
let server: Server;
let cert: Buffer;
let key: Buffer;
let port: number;
let pool: Pool;
const handshakes: { readonly isResumed: boolean; readonly serverName: string | false | null }[] = [];

beforeAll(async () => {
  makeCertificate(certFile, keyFile);
  [cert, key] = [readFileSync(certFile), readFileSync(keyFile)];
  server = createServer(
    { cert, key, ca: cert, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const { authorized } = request.socket as TLSSocket;
      if (request.url === '/large') response.end(Buffer.alloc(5 << 20, 'x'));
      else response.end(authorized ? 'known client' : 'some client');
    },
  );
  server.on('secureConnection', (socket: TLSSocket & { servername?: string | false | null }) => {
    handshakes.push({ isResumed: socket.isSessionReused(), serverName: socket.servername ?? null });
  });
  server.listen(0);
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});
afterEach(() => {
  pool.destroy();
  handshakes.length = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

function open(host: string, tls?: TlsOptions): void {
  pool = new Pool(
    new URL(`https://${host}:${port}`),
    {
      connections: 2,
      connectTimeoutMs: 20_000,
      headersTimeoutMs: 20_000,
      bodyTimeoutMs: 20_000,
      keepAliveTimeoutMs: 20_000,
    },
    tls,
  );
}

it('an upstream that no authority vouches for gets no request', async () => {
  open('localhost');
  expect(await call(pool)).toMatchObject({ head: undefined, error: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
});

it('nor does one whose certificate has another name', async () => {
  open('localhost', { ca: cert, verify: true, servername: 'other.example' });
  expect(await call(pool)).toMatchObject({ head: undefined, error: 'ERR_TLS_CERT_ALTNAME_INVALID' });
});

it.each([
  ['localhost', 'localhost'],
  ['127.0.0.1', null],
])('the certificate of %s is verified for that name', async (host, serverName) => {
  open(host, { ca: cert, verify: true });
  expect(await call(pool)).toMatchObject({ body: 'some client' });
  expect(handshakes.map((handshake) => handshake.serverName || null)).toEqual([serverName]);
});

it('the client certificate is sent', async () => {
  open('localhost', { ca: cert, cert, key, verify: true });
  expect(await call(pool)).toMatchObject({ body: 'known client' });
});

it('verification can be turned off', async () => {
  open('localhost', { verify: false });
  expect(await call(pool)).toMatchObject({ body: 'some client' });
});

it('one connection carries several requests, and a further one resumes its session', async () => {
  open('localhost', { ca: cert, verify: true });
  for (let count = 0; count < 3; count++) expect((await call(pool)).body).toBe('some client');
  expect(handshakes).toHaveLength(1);
  expect((await call(pool, { needsNewConnection: true })).head?.status).toBe(200);
  expect(handshakes.map(({ isResumed }) => isResumed)).toEqual([false, true]);
});

it('a long response arrives in full, uploads too', async () => {
  open('localhost', { ca: cert, verify: true });
  const body = Buffer.alloc(5 << 20, 'y');
  const results = await Promise.all([
    call(pool, { target: '/large' }),
    call(pool, { method: 'POST', target: '/large', body }),
  ]);
  for (const result of results) expect(result.body).toBe('x'.repeat(5 << 20));
});

it('files that hold no certificate are refused when the pool is made', () => {
  open('localhost');
  expect(() => open('localhost', { cert: Buffer.from('no certificate'), verify: true })).toThrow();
});
