import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';
import { sendRaw } from '../../fixtures/raw.ts';
import { startUpstream, type TestUpstream } from '../../fixtures/upstream.ts';

/** A name as a CGI server hands it to its program; the strictest of them make `_` of all that is no letter or digit. */
const variable = (name: string) => `HTTP_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;

/** Any character that a field name may have besides letters and digits (RFC 9110 section 5.6.2). */
const SEPARATORS = [..."-_.!#$%&'*+^`|~"];

/** A name with other separators and other letter case. */
const spellingsOf = (name: string) =>
  fc
    .tuple(
      fc.array(fc.constantFrom(...SEPARATORS), { minLength: 8, maxLength: 8 }),
      fc.constantFrom<(text: string) => string>(
        (text) => text,
        (text) => text.toUpperCase(),
        (text) => text.toLowerCase(),
      ),
    )
    .map(([separators, inCase]) => {
      let at = 0;
      return inCase(name.replaceAll('-', () => separators[at++ % separators.length] ?? '-'));
    });

const METHOD_NAMES = [
  'X-HTTP-Method-Override',
  'X-HTTP-MethodOverride',
  'X-HTTP-Method',
  'X-Method-Override',
  'X-MethodOverride',
  'X-Original-Method',
  'HTTP-Method-Override',
  'X-HTTP-Verb',
  'X-HTTP-Verb-Override',
  'X-GData-HTTP-Method-Override',
];
const PATH_NAMES = [
  'X-Original-URL',
  'X-Original-URI',
  'X-Rewrite-URL',
  'X-Rewrite-URI',
  'X-Override-URL',
  'X-Override-URI',
  'X-Original-Path',
  'X-Envoy-Original-Path',
  'X-MS-Original-URL',
  'X-Replaced-Path',
  'X-WAWS-Unencoded-URL',
  'Script-Name',
  'Path-Info',
  'Request-URI',
];
const OWN_NAMES = [
  'X-Account-Id',
  'X-Organization-Id',
  'X-Principal-Id',
  'X-Principal-Type',
  'X-Request-Id',
  'X-Forwarded-For',
  'X-Forwarded-Proto',
  'X-Forwarded-Port',
  'X-Real-IP',
  'RateLimit-Policy',
  'Service-RateLimit-Mode',
  'Transfer-Encoding',
  'Proxy-Authorization',
  'Keep-Alive',
  'Proxy',
];
const READ_NAMES = [
  'X-Service-Account',
  'Idempotency-Key',
  'Content-Length',
  'Content-Type',
  'Content-Encoding',
];

let gateway: TestGateway;
let upstream: TestUpstream;
beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ upstream, limits: PLENTY });
});
afterAll(() => gateway.close());

const send = (fields: string, method = 'POST', path = '/v3/things') =>
  sendRaw(
    gateway.url,
    `${method} ${path} HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n${fields}\r\nConnection: close\r\n\r\n`,
  );

/** The values that a program behind a CGI server sees under a name. */
const seenAs = (name: string) =>
  Object.entries(upstream.seen.at(-1)?.headers ?? {}).flatMap(([sent, value]) =>
    variable(sent) === variable(name) ? [value] : [],
  );

describe('however its separators are written', () => {
  it.each(METHOD_NAMES)('%s is a 400, and nothing runs', async (name) => {
    await fc.assert(
      fc.asyncProperty(spellingsOf(name), async (spelling) => {
        const before = upstream.seen.length;
        const answer = await send(`${spelling}: DELETE`);
        expect(answer.statuses, spelling).toEqual([400]);
        expect(upstream.seen).toHaveLength(before);
      }),
      { numRuns: generatedCases(15), examples: [[name.replaceAll('-', '_')], [name.replaceAll('-', '.')]] },
    );
  });

  it.each([...PATH_NAMES, ...OWN_NAMES])(
    '%s does not reach the upstream as the client wrote it',
    async (name) => {
      const aliases = spellingsOf(name).filter(
        (spelling) => !/^(transfer-encoding|keep-alive|x-request-id)$/i.test(spelling),
      );
      await fc.assert(
        fc.asyncProperty(aliases, async (spelling) => {
          expect((await send(`${spelling}: forged-by-the-client`)).statuses, spelling).toEqual([200]);
          expect(seenAs(name), spelling).not.toContainEqual(expect.stringContaining('forged'));
        }),
        { numRuns: generatedCases(15), examples: [[name.replaceAll('-', '_')], [name.replaceAll('-', '.')]] },
      );
    },
  );

  it.each(READ_NAMES)('%s under another name does not replace the one that was read', async (name) => {
    const aliases = spellingsOf(name).filter((spelling) => spelling.toLowerCase() !== name.toLowerCase());
    await fc.assert(
      fc.asyncProperty(aliases, async (spelling) => {
        const answer = await send(`${spelling}: forged`);
        expect(answer.statuses, spelling).toEqual([200]);
        expect(seenAs(name), spelling).not.toContain('forged');
      }),
      { numRuns: generatedCases(15) },
    );
  });

  it.each([
    ['X_Service_Account: acct_2', 'X-Service-Account: acct_1'],
    ['X.Service.Account: acct_2', 'x-service-account: acct_1'],
    ['Authorization: Bearer other', 'A: 1'],
    ['Content_Type: text/plain', 'Content-Type: application/json'],
    ['Content-Type: text/plain', 'Content-Type: application/json'],
  ])('two fields that one program reads as one are a 400: %s', async (one, other) => {
    const before = upstream.seen.length;
    for (const fields of [`${one}\r\n${other}`, `${other}\r\n${one}`]) {
      expect((await send(fields)).statuses, fields).toEqual([400]);
    }
    expect(upstream.seen).toHaveLength(before);
  });
});

it.each([
  'Access-Control-Request-Method',
  'X-Original-File-Path',
  'X-Payment-Method',
  'X-Request-Path-Count',
])('%s is no override and reaches the upstream', async (name) => {
  expect((await send(`${name}: GET`)).statuses).toEqual([200]);
  expect(seenAs(name)).toEqual(['GET']);
});

it('a field listed in Connection is removed in every spelling, except those that the gateway uses', async () => {
  const nominations = 'Connection: x_hop, X.Service.Account, idempotency_key, close';
  const answer = await send(
    `X-Hop: 1\r\nX.Hop: 2\r\nX_Own: 3\r\nX-Service-Account: acct_1\r\nIdempotency-Key: k1\r\n${nominations}`,
  );
  expect(answer.statuses).toEqual([200]);
  expect(seenAs('X-Hop')).toEqual([]);
  expect(upstream.seen.at(-1)?.headers).toMatchObject({
    x_own: '3',
    'x-service-account': 'acct_1',
    'idempotency-key': 'k1',
  });
});

it('a header parameter that the document declares is valid under its own name only', async () => {
  const field = 'Content-Type: application/json\r\nIdempotency-Key: k1';
  const put = (fields: string) => {
    const head = `PUT /v3/strict/th_a HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\nConnection: close\r\n`;
    return sendRaw(gateway.url, `${head}${fields}\r\nContent-Length: 12\r\n\r\n{"name":"x"}`);
  };
  expect((await put(field)).statuses).toEqual([200]);
  const answer = await put(`${field}\r\nIdempotency_Key: much-too-long`);
  expect(answer.statuses).toEqual([422]);
  expect(answer.text).toContain('"field":"Idempotency-Key"');
});

it("an upstream cannot set the gateway's headers with a different spelling either", async () => {
  const fields = {
    RateLimit_Policy: 'theirs',
    'Service.RateLimit.Mode': 'theirs',
    X_Request_Id: 'theirs',
    X_Own: 'own',
  };
  const answer = (_request: unknown, response: ServerResponse) =>
    void response.writeHead(200, fields).end('ok');
  const other = await startGateway({ upstream: await startUpstream(answer), limits: PLENTY });
  const { text } = await sendRaw(
    other.url,
    'GET /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\nConnection: close\r\n\r\n',
  );
  await other.close();
  expect(text).toMatch(/^x_own: own\r$/im);
  expect(text).not.toContain('theirs');
});

/** What a WSGI framework with method overrides runs: PEP 3333 makes variables of names by `-` and `_` alone. */
it('behind a WSGI server, the method that was charged is the method that runs', async () => {
  const ran: string[] = [];
  const server = createServer((request, response) => {
    const environ = new Map<string, string>();
    for (let index = 0; index < request.rawHeaders.length; index += 2) {
      const key = `HTTP_${(request.rawHeaders[index] ?? '').toUpperCase().replaceAll('-', '_')}`;
      environ.set(key, request.rawHeaders[index + 1] ?? '');
    }
    ran.push(environ.get('HTTP_X_HTTP_METHOD_OVERRIDE') ?? request.method ?? '');
    response.end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const wsgi = await startGateway({
    upstream: { url, seen: [], close: async () => void server.closeAllConnections() },
    limits: PLENTY,
  });
  const post = (field: string) =>
    sendRaw(
      wsgi.url,
      `POST /v3/things HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer service\r\n${field}\r\nConnection: close\r\n\r\n`,
    );
  const statuses: number[] = [];
  for (const name of ['X-HTTP-Method-Override', 'X_HTTP_Method_Override', 'X_HTTP-METHOD_override']) {
    statuses.push(...(await post(`${name}: DELETE`)).statuses);
  }
  statuses.push(...(await post('X-Plain: 1')).statuses);
  await wsgi.close();
  server.close();
  expect(statuses).toEqual([400, 400, 400, 200]);
  expect(ran).toEqual(['POST']);
});
