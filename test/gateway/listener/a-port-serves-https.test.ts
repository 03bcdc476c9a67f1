import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newAuthority, newCertificate } from '../../fixtures/certificate.ts';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { connectRaw, sendRaw, untilClosed } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const HEAD = 'Host: weir\r\nAuthorization: Bearer service\r\n';
const GET = `GET /v3/things HTTP/1.1\r\n${HEAD}\r\n`;
const LAST_GET = `GET /v3/things HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`;

const certificate = newCertificate();

/** Connects with these options and sends nothing. Rejects with the reason of a failed handshake. */
async function handshake(url: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), ca: readFileSync(certificate.certFile), ...options });
  await once(socket, 'secureConnect');
  return socket;
}

let gateway: TestGateway;

async function start(listen: object = {}): Promise<void> {
  gateway = await startGateway({ limits: PLENTY, settings: { listen: { tls: certificate, ...listen } } });
}

describe('a port with listen.tls', () => {
  beforeAll(() => start());
  afterAll(() => gateway.close());

  it('serves HTTPS, and the upstream sees the scheme and no subject that a client made up', async () => {
    expect(gateway.url).toMatch(/^https:/);
    const options = {
      ca: readFileSync(certificate.certFile),
      headers: {
        Authorization: 'Bearer service',
        'X-Client-Certificate-Subject': 'CN=admin',
        X_Client_Certificate_Subject: 'CN=admin',
      },
    };
    const response = await new Promise<{ status?: number; body: string }>((resolve, reject) => {
      const outgoing = request(`${gateway.url}/v3/things`, options, async (incoming) =>
        resolve({ status: incoming.statusCode ?? 0, body: await text(incoming) }),
      );
      outgoing.on('error', reject).end();
    });
    expect(response).toEqual({ status: 200, body: '{"data":[]}' });
    const { headers = {} } = gateway.upstream.seen.at(-1) ?? {};
    expect(headers['x-forwarded-proto']).toBe('https');
    expect(Object.keys(headers).filter((name) => name.includes('subject'))).toEqual([]);
  });

  it('offers TLS 1.2 and 1.3 with forward secrecy and HTTP/1.1, and nothing older', async () => {
    const modern = await handshake(gateway.url, { ALPNProtocols: ['h2', 'http/1.1'] });
    expect([modern.getProtocol(), modern.alpnProtocol]).toEqual(['TLSv1.3', 'http/1.1']);
    modern.destroy();
    const older = await handshake(gateway.url, { maxVersion: 'TLSv1.2' });
    expect([older.getProtocol(), older.getCipher().name]).toEqual([
      'TLSv1.2',
      expect.stringMatching(/^ECDHE-.*(GCM|POLY1305)/),
    ]);
    older.destroy();
    const old: ConnectionOptions = {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    };
    await expect(handshake(gateway.url, old)).rejects.toThrow(/version/);
    const weak: ConnectionOptions = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA256' };
    await expect(handshake(gateway.url, weak)).rejects.toThrow(/handshake failure/);
    await expect(handshake(gateway.url, { ALPNProtocols: ['h2'] })).rejects.toThrow(/application protocol/);
  });

  it('closes a connection that does not speak TLS', async () => {
    const answer = await sendRaw(gateway.url.replace('https:', 'http:'), GET);
    expect(answer.statuses).toEqual([]);
  });

  it('takes a client that closes its side early for one that has gone, and answers a message that is not HTTP', async () => {
    const socket = await connectRaw(gateway.url);
    const answer = untilClosed(socket);
    socket.end(LAST_GET);
    expect((await answer).statuses).toEqual([]);
    expect((await sendRaw(gateway.url, 'this is not HTTP\r\n\r\n')).statuses).toEqual([400]);
  });

  it('serves WebSockets, and ignores other upgrades', async () => {
    const upgrade = (protocol: string) =>
      `GET /v3/things HTTP/1.1\r\n${HEAD}Connection: Upgrade, close\r\nUpgrade: ${protocol}\r\n\r\n`;
    expect((await sendRaw(gateway.url, upgrade('other'))).statuses).toEqual([200]);
    expect((await sendRaw(gateway.url, upgrade('websocket'))).statuses).toHaveLength(1);
  });
});

describe('the limits of a port with listen.tls', () => {
  // A handshake of a client in this test never takes as long as the header time-out, on a busy machine either.
  const LIMITS = { headersTimeoutMs: 3_000, sendTimeoutMs: 300, bodyTimeoutMs: 1_000, maxConnections: 3 };
  beforeAll(() => start(LIMITS));
  afterAll(() => gateway.close());

  it('end a handshake, a header and a body that do not arrive', async () => {
    const { hostname, port } = new URL(gateway.url);
    const silent = untilClosed(connectTcp(Number(port), hostname));
    const [header, body] = await Promise.all([connectRaw(gateway.url), connectRaw(gateway.url)]);
    const ended = [untilClosed(header), untilClosed(body)];
    header.write('GET /v3/things HTTP/1.1\r\nHost: w');
    body.write(
      `PUT /v3/strict/th_a HTTP/1.1\r\n${HEAD}Idempotency-Key: a\r\nContent-Type: application/json\r\n` +
        'Content-Length: 1000\r\n\r\n{',
    );
    expect((await Promise.all(ended)).map(({ statuses }) => statuses)).toEqual([[408], [408]]);
    expect((await silent).text).toBe('');
  });

  it('refuse connections above the maximum with a 503', async () => {
    const held = await Promise.all([1, 2, 3].map(() => connectRaw(gateway.url)));
    for (const socket of held) {
      socket.write(GET);
      expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200/);
    }
    expect((await sendRaw(gateway.url, GET)).statuses).toEqual([503]);
    for (const socket of held) socket.destroy();
    await expect.poll(async () => (await sendRaw(gateway.url, LAST_GET)).statuses).toEqual([200]);
  });

  it('do not end an idle connection that has received a response', async () => {
    const socket = await connectRaw(gateway.url);
    socket.write(GET);
    await once(socket, 'data');
    const others = Array.from({ length: 4 }, () => sendRaw(gateway.url, 'GET / HTTP/1.1\r\nHost: '));
    await Promise.all(others);
    socket.write(LAST_GET);
    expect((await untilClosed(socket)).statuses).toEqual([200]);
  });
});

it('a client that does not read its response is disconnected', async () => {
  let released = false;
  const upstream = await startUpstream((_request, response) => {
    response.once('close', () => {
      released = true;
    });
    response.end(Buffer.alloc(64 << 20, 'x'));
  });
  const listen = { tls: certificate, sendTimeoutMs: 300 };
  gateway = await startGateway({ upstream, limits: PLENTY, settings: { listen } });
  const socket = (await connectRaw(gateway.url)).on('error', () => {});
  socket.pause();
  socket.write(GET);
  await expect.poll(() => released, { timeout: 60_000 }).toBe(true);
  await untilClosed(socket.resume());
  expect(socket.bytesRead).toBeLessThan(64 << 20);
  await gateway.close();
});

it('closing the gateway waits for no handshake', async () => {
  await start();
  const { hostname, port } = new URL(gateway.url);
  const silent = connectTcp(Number(port), hostname);
  await once(silent, 'connect');
  const closed = untilClosed(silent);
  await gateway.close();
  await closed;
});

describe('a port with listen.tls.clientCaFile', () => {
  const authority = newAuthority();
  const client = authority.issue('/C=DE/O=Ex, ample\\+Söhne/CN=bil\\=ling');
  const stranger = newAuthority().issue('/CN=billing');
  const pem = ({ certFile, keyFile }: typeof client) => ({
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
  });
  beforeAll(() => start({ tls: { ...certificate, clientCaFile: authority.certFile } }));
  afterAll(() => gateway.close());

  /** The statuses, or nothing where the gateway ends the connection. In TLS 1.3, it does so after the client's handshake. */
  async function statusesWith(options: ConnectionOptions): Promise<readonly number[]> {
    const socket = await handshake(gateway.url, options);
    socket.write(LAST_GET.replace('\r\n\r\n', '\r\nX-Client-Certificate-Subject: CN=admin\r\n\r\n'));
    return (await untilClosed(socket)).statuses;
  }

  it('refuses a client without a certificate, and one with a certificate of another authority', async () => {
    const before = gateway.upstream.seen.length;
    expect(await statusesWith({})).toEqual([]);
    expect(await statusesWith(pem(stranger))).toEqual([]);
    expect(gateway.upstream.seen).toHaveLength(before);
  });

  it('sends the verified subject to the upstream, in ASCII and without ambiguity', async () => {
    expect(await statusesWith(pem(client))).toEqual([200]);
    expect(gateway.upstream.seen.at(-1)?.headers['x-client-certificate-subject']).toBe(
      'CN=bil\\3dling,O=Ex\\2c ample\\2bS\\c3\\b6hne,C=DE',
    );
  });

  it('keeps the subject when a session is resumed', async () => {
    const options = { ...pem(client), maxVersion: 'TLSv1.2' } as const;
    const first = await handshake(gateway.url, options);
    const session = first.getSession();
    first.destroy();
    const seen = gateway.upstream.seen.length;
    expect(await statusesWith({ ...options, ...(session && { session }) })).toEqual([200]);
    expect(gateway.upstream.seen[seen]?.headers['x-client-certificate-subject']).toContain('CN=bil');
  });
});
