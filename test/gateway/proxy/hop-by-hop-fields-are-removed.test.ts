import { once } from 'node:events';
import { request, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { sendRaw } from '../../fixtures/raw.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const AUTHORIZED = 'Host: weir\r\nAuthorization: Bearer service\r\n';

describe('a request', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ limits: PLENTY });
  });
  afterAll(() => gateway.close());

  async function seenWith(fields: string): Promise<NodeJS.Dict<string | string[]>> {
    const bytes = `GET /v3/things HTTP/1.1\r\n${AUTHORIZED}${fields}\r\nConnection: close\r\n\r\n`;
    const answer = await sendRaw(gateway.url, bytes);
    expect(answer.statuses).toEqual([200]);
    return gateway.upstream.seen.at(-1)?.headers ?? {};
  }

  it.each([
    ['Keep-Alive: timeout=5, max=100', 'keep-alive'],
    ['Upgrade: h2c', 'upgrade'],
    ['HTTP2-Settings: AAMAAABkAAQAAP__', 'http2-settings'],
    ['Proxy-Connection: keep-alive', 'proxy-connection'],
    ['Proxy-Authorization: Basic eA==', 'proxy-authorization'],
    ['TE: gzip', 'te'],
    ['Trailer: X-Checksum', 'trailer'],
    ['X-Original-URL: /v3/reports', 'x-original-url'],
    ['X-Rewrite-URL: /v3/reports', 'x-rewrite-url'],
    ['X_Account_Id: forged', 'x_account_id'],
    ['X_Service_Account: acct_4', 'x_service_account'],
    ['X_Forwarded_For: 1.2.3.4', 'x_forwarded_for'],
    ['RateLimit: forged', 'ratelimit'],
    ['Service-RateLimit-Mode: degraded', 'service-ratelimit-mode'],
    ['Forwarded: for=1.2.3.4', 'forwarded'],
    ['X-Forwarded-Port: 443', 'x-forwarded-port'],
    ['X-Real-IP: 1.2.3.4', 'x-real-ip'],
  ])('with "%s" is served, and the upstream does not see it', async (field, name) => {
    expect((await seenWith(field))[name]).toBeUndefined();
  });

  it('keeps a field with an underscore that is not one of the gateway', async () => {
    expect((await seenWith('X_Own: 1')).x_own).toBe('1');
  });

  it('has the fields listed in its Connection header removed', async () => {
    const seen = await seenWith(
      'X-Hop: 1\r\nX-End: 2\r\nConnection: x-hop, X-Request-Id, X-Account-Id, keep-alive',
    );
    expect(seen['x-hop']).toBeUndefined();
    expect(seen).toMatchObject({
      'x-end': '2',
      'x-account-id': 'acct_1',
      'x-request-id': expect.any(String),
    });
  });

  it('cannot nominate away what the charge or the upstream goes by', async () => {
    const seen = await seenWith(
      'X-Service-Account: acct_1\r\nIdempotency-Key: k1\r\nConnection: X-Service-Account, Authorization, Idempotency-Key',
    );
    expect(seen).toMatchObject({
      'x-service-account': 'acct_1',
      authorization: 'Bearer service',
      'idempotency-key': 'k1',
    });
  });

  it('that accepts trailers reports this to the upstream', async () => {
    expect((await seenWith('TE: gzip, trailers')).te).toBe('trailers');
  });

  it('that accepts trailers lists TE in the Connection field of the upstream, as RFC 9110 section 10.1.4 requires', async () => {
    expect((await seenWith('TE: trailers')).connection).toBe('TE');
    expect((await seenWith('TE: gzip')).connection).toBeUndefined();
  });

  it('arrives with the upstream as its Host', async () => {
    const seen = await seenWith('X-A: 1');
    expect(seen).toMatchObject({ host: new URL(gateway.upstream.url).host, 'x-forwarded-host': 'weir' });
  });
});

/** What the upstream answers, by the query of the request. */
const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  '': (response) => response.writeHead(200, { 'Content-Length': '2' }).end('ok'),
  hop(response) {
    const fields = {
      'X-Hop': '1',
      'Keep-Alive': 'timeout=77',
      'Proxy-Authenticate': 'Basic',
      'X-Request-Id': 'theirs',
    };
    response
      .writeHead(200, { ...fields, Connection: 'keep-alive, X-Hop', 'Set-Cookie': ['a=1', 'b=2', 'c=3'] })
      .end('ok');
  },
  early(response) {
    response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
    response.end('ok');
  },
  range: (response) =>
    response.writeHead(206, { 'Content-Range': 'bytes 0-3/10', 'Content-Length': '4' }).end('0123'),
  trailers(response) {
    response.setHeader('Trailer', 'X-Checksum');
    response.write('body');
    response.addTrailers({ 'X-Checksum': 'abc' });
    response.end();
  },
  204: (response) => response.writeHead(204).end(),
  304: (response) => response.writeHead(304, { ETag: '"x"' }).end(),
  404: (response) => response.writeHead(404).end('ok'),
  500: (response) => response.writeHead(500).end('ok'),
  503: (response) => response.writeHead(503).end('ok'),
};

describe('a response', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    const upstream = await startUpstream(({ url = '', headers }, response) => {
      const query = headers.range === undefined ? (url.split('?')[1] ?? '') : 'range';
      ANSWERS[query]?.(response);
    });
    gateway = await startGateway({ upstream, limits: PLENTY });
  });
  afterAll(() => gateway.close());

  const raw = (method: string, query: string, fields = '') =>
    sendRaw(
      gateway.url,
      `${method} /v3/things?${query} HTTP/1.1\r\n${AUTHORIZED}${fields}Connection: close\r\n\r\n`,
    );

  it('has its hop-by-hop fields removed and keeps the others', async () => {
    const { text } = await raw('GET', 'hop');
    expect(text).not.toMatch(/^(X-Hop|Keep-Alive|Proxy-Authenticate):/im);
    expect(text).not.toContain('theirs');
    expect(text.match(/^set-cookie: [abc]=\d\r$/gim)).toHaveLength(3);
  });

  it('to HEAD has a length and no body, and a second request fits behind it', async () => {
    const answer = await sendRaw(
      gateway.url,
      `HEAD /v3/things HTTP/1.1\r\n${AUTHORIZED}\r\nGET /v3/things HTTP/1.1\r\n${AUTHORIZED}Connection: close\r\n\r\n`,
    );
    expect(answer.statuses).toEqual([200, 200]);
    expect(answer.text.match(/^content-length: 2\r$/gim)).toHaveLength(2);
    expect(answer.text.match(/^ok$/gm)).toHaveLength(1);
  });

  it.each([204, 304])('with status %i has neither body nor chunks', async (status) => {
    const { text, statuses } = await raw('GET', `${status}`);
    expect(statuses).toEqual([status]);
    expect(text).not.toMatch(/^transfer-encoding/im);
    expect(text.endsWith('\r\n\r\n')).toBe(true);
  });

  it.each([404, 500, 503])("with the upstream's own status %i passes as it is", async (status) => {
    const { text, statuses } = await raw('GET', `${status}`);
    expect(statuses).toEqual([status]);
    expect(text).toContain('\r\nok');
  });

  it('in part is a 206 with its range', async () => {
    const { text, statuses } = await raw('GET', '', 'Range: bytes=0-3\r\n');
    expect(statuses).toEqual([206]);
    expect(text).toMatch(/^content-range: bytes 0-3\/10\r$/im);
  });

  it('keeps its trailers', async () => {
    const download = request(`${gateway.url}/v3/things?trailers`, {
      headers: { Authorization: 'Bearer service' },
    });
    download.end();
    const [answer] = await once(download, 'response');
    answer.resume();
    await once(answer, 'end');
    expect(answer.trailers).toEqual({ 'x-checksum': 'abc' });
  });

  it('can be preceded by a 103', async () => {
    const { text, statuses } = await raw('GET', 'early');
    expect(statuses).toEqual([103, 200]);
    expect(text).toContain('</style.css>; rel=preload; as=style');
  });

  it('to HTTP/1.0 is not chunked', async () => {
    const { text } = await sendRaw(gateway.url, `GET /v3/things?trailers HTTP/1.0\r\n${AUTHORIZED}\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 200/);
    expect(text).not.toMatch(/^transfer-encoding/im);
    expect(text.endsWith('\r\n\r\nbody')).toBe(true);
  });
});
