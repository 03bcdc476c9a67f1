import { describe, expect, test } from 'vitest';
import { sendRaw } from '../../test/fixtures/raw.ts';
import { ACCT_1, createClient } from './fixtures/client.ts';
import { databases, quickest } from './fixtures/databases.ts';
import { operations } from './fixtures/document.ts';
import { usePlatform } from './fixtures/platform.ts';

const MEMBERS = ['code', 'detail', 'extensions', 'requestId', 'status', 'title', 'type'];
const HOST = 'Host: platform\r\nConnection: close\r\n';
const ACCOUNT = `${HOST}X-Account-Id: acct_1\r\n`;
const JSON_OF = (bytes: number) => `Content-Type: application/json\r\nContent-Length: ${bytes}\r\n`;
const PAYEES = '/v3/payments/payees';

/** A request, and the status and code of its answer. */
const REFUSED: readonly [what: string, request: string, status: number, code: string][] = [
  ['no HTTP', 'hello\r\n\r\n', 400, 'BadRequest'],
  [
    'a header that is too long',
    `GET ${PAYEES} HTTP/1.1\r\n${HOST}X: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'BadRequest',
  ],
  ['a path that is too long', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${HOST}\r\n`, 431, 'BadRequest'],
  ['no Host', `GET ${PAYEES} HTTP/1.1\r\nConnection: close\r\n\r\n`, 400, 'BadRequest'],
  ['an unknown expectation', `GET ${PAYEES} HTTP/1.1\r\n${HOST}Expect: tea\r\n\r\n`, 417, 'BadRequest'],
  ['a path that is not encoded as it should be', `GET /v3/%zz HTTP/1.1\r\n${HOST}\r\n`, 400, 'BadRequest'],
  ['a method that Node does not parse', `BREW ${PAYEES} HTTP/1.1\r\n${HOST}\r\n`, 400, 'BadRequest'],
  ['a method that HTTP has', `PROPFIND ${PAYEES} HTTP/1.1\r\n${ACCOUNT}\r\n`, 405, 'MethodNotAllowed'],
  ['QUERY without a type', `QUERY ${PAYEES} HTTP/1.1\r\n${ACCOUNT}\r\n`, 405, 'MethodNotAllowed'],
  ['QUERY of no path', `QUERY /v4 HTTP/1.1\r\n${ACCOUNT}\r\n`, 404, 'ResourceNotFound'],
  ['a path without its id', `GET ${PAYEES}/ HTTP/1.1\r\n${ACCOUNT}\r\n`, 404, 'ResourceNotFound'],
  ['TRACE', `TRACE ${PAYEES} HTTP/1.1\r\n${ACCOUNT}\r\n`, 405, 'MethodNotAllowed'],
  ['PUT on a public path', `PUT /v3/openapi.yaml HTTP/1.1\r\n${HOST}\r\n`, 405, 'MethodNotAllowed'],
  ['a path that does not exist', `GET /v4 HTTP/1.1\r\n${ACCOUNT}\r\n`, 404, 'ResourceNotFound'],
  ['OPTIONS of such a path', `OPTIONS /v4 HTTP/1.1\r\n${ACCOUNT}\r\n`, 404, 'ResourceNotFound'],
  [
    'an id of 129 characters',
    `GET ${PAYEES}/${'x'.repeat(129)} HTTP/1.1\r\n${ACCOUNT}\r\n`,
    422,
    'ValidationError',
  ],
  [
    'an id of 10,000 characters',
    `GET ${PAYEES}/${'x'.repeat(10_000)} HTTP/1.1\r\n${ACCOUNT}\r\n`,
    422,
    'ValidationError',
  ],
  ['a body that is not JSON', `POST ${PAYEES} HTTP/1.1\r\n${ACCOUNT}${JSON_OF(1)}\r\n{`, 400, 'BadRequest'],
  [
    'another media type',
    `POST ${PAYEES} HTTP/1.1\r\n${ACCOUNT}Content-Type: text/xml\r\nContent-Length: 1\r\n\r\n<`,
    400,
    'BadRequest',
  ],
  [
    'a body that is too large',
    `POST ${PAYEES} HTTP/1.1\r\n${ACCOUNT}${JSON_OF(2_000_000)}\r\n`,
    413,
    'PayloadTooLarge',
  ],
  [
    'JSON that is not UTF-8',
    `POST ${PAYEES} HTTP/1.1\r\n${ACCOUNT}${JSON_OF(12)}\r\n{"name":"\xe9"}`,
    400,
    'BadRequest',
  ],
  [
    'JSON in another charset',
    `POST ${PAYEES} HTTP/1.1\r\n${ACCOUNT}Content-Type: application/json; charset=latin1\r\nContent-Length: 12\r\n\r\n{"name":"e"}`,
    400,
    'BadRequest',
  ],
  [
    'a body with a Content-Encoding',
    `POST ${PAYEES} HTTP/1.1\r\n${ACCOUNT}${JSON_OF(12).trimEnd()}\r\nContent-Encoding: gzip\r\n\r\n{"name":"e"}`,
    400,
    'BadRequest',
  ],
  [
    'two Idempotency-Keys',
    `POST ${PAYEES} HTTP/1.1\r\n${ACCOUNT}${JSON_OF(12)}Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n{"name":"e"}`,
    400,
    'BadRequest',
  ],
  ['two Accounts', `GET ${PAYEES} HTTP/1.1\r\n${ACCOUNT}X-Account-Id: acct_2\r\n\r\n`, 400, 'BadRequest'],
];

/** What `Allow` names for a path of the document. */
function methodsOf(path: string): string[] {
  const methods = operations.filter((one) => one.path === path).map(({ method }) => method);
  return [...methods, ...(methods.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort();
}

describe('every answer of the port', () => {
  const platform = usePlatform(quickest);

  test.each(REFUSED)('%s', async (_what, request, status, code) => {
    const { text } = await sendRaw(platform.url, request);
    const [head = '', body = ''] = text.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head).toMatch(/^content-type: application\/problem\+json\r?$/im);
    const problem = JSON.parse(body);
    expect(head.toLowerCase()).toContain(`x-request-id: ${problem.requestId}`);
    expect([problem.status, problem.code]).toEqual([status, code]);
    expect(
      Object.keys(problem)
        .filter((name) => name !== 'errors')
        .sort(),
    ).toEqual(MEMBERS);
  });

  test('the charset utf8 is UTF-8', async () => {
    const headers = { ...ACCT_1, 'content-type': 'application/json; charset=utf8' };
    const answer = await fetch(platform.url + PAYEES, { method: 'POST', headers, body: '{"name":"é"}' });
    expect([answer.status, await answer.json()]).toMatchObject([201, { name: 'é' }]);
  });

  test('HEAD has the status and the headers of GET, and no body', async () => {
    for (const [path, status] of [
      [PAYEES, 200],
      [`${PAYEES}/none`, 404],
      ['/v4', 404],
      [`${PAYEES}?limit=1`, 422],
      ['/v3/openapi.yaml', 200],
    ] as const) {
      const [head, get] = await Promise.all(
        ['HEAD', 'GET'].map((method) => fetch(platform.url + path, { method, headers: ACCT_1 })),
      );
      expect([path, head?.status, await head?.text()]).toEqual([path, status, '']);
      expect(head?.headers.get('content-type')).toBe(get?.headers.get('content-type'));
    }
  });

  test('OPTIONS and a 405 name the methods of each path of the document', async () => {
    for (const path of new Set(operations.map((operation) => operation.path))) {
      const url = platform.url + path.replaceAll(/\{\w+\}/g, 'some-id');
      const [options, put] = await Promise.all(['OPTIONS', 'PUT'].map((method) => fetch(url, { method })));
      expect([path, options?.status, put?.status]).toEqual([path, 204, 405]);
      for (const answer of [options, put]) {
        const allowed = (answer?.headers.get('allow') ?? '').split(', ').sort();
        expect([path, allowed]).toEqual([path, methodsOf(path)]);
      }
    }
  });
});

describe.each(databases)('on $name', (database) => {
  const platform = usePlatform(database);

  test('an id of 101 to 128 characters is one that does not exist', async () => {
    const client = createClient(platform.url, ACCT_1);
    for (const length of [101, 128])
      expect((await client.get(`${PAYEES}/${'x'.repeat(length)}`)).status).toBe(404);
  });

  test.each(['a\0b', 'a\ud800b', 'a\udc00b', '\ufeffb'])(
    'the text %j is a 422 that names its field',
    async (text) => {
      const client = createClient(platform.url, ACCT_1);
      const fieldOf = async (method: string, path: string, body?: object) => {
        const answer = await client.send(method, path, body);
        return [answer.status, answer.body.errors?.[0]?.field];
      };
      expect(await fieldOf('POST', PAYEES, { name: text })).toEqual([422, 'name']);
      const hooks = { url: 'https://example.com/', subscribedEvents: ['Invoice.Paid', text] };
      expect(await fieldOf('POST', '/v3/platform/webhook-subscriptions', hooks)).toEqual([
        422,
        'subscribedEvents.1',
      ]);
      // A surrogate without its other half cannot be written in a URL.
      if (/\p{Surrogate}/u.test(text)) return;
      const value = encodeURIComponent(text);
      expect(await fieldOf('GET', `${PAYEES}?filter[status][eq]=${value}`)).toEqual([
        422,
        'filter[status][eq]',
      ]);
      expect(await fieldOf('GET', `/v3/search/payees?filter[name][contains]=${value}`)).toEqual([
        422,
        'filter[name][contains]',
      ]);
    },
  );

  test('a byte order mark within a text is stored', async () => {
    const client = createClient(platform.url, ACCT_1);
    const { body } = await client.send('POST', PAYEES, { name: 'Ada', externalId: 'a\ufeffb' });
    const { body: found } = await client.get(`${PAYEES}?filter[externalId][eq]=a%EF%BB%BFb`);
    expect(found.data.map(({ id, externalId }) => [id, externalId])).toEqual([[body.id, 'a\ufeffb']]);
  });
});
