import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';
import { startUpstream } from '../fixtures/upstream.ts';

interface Problem {
  readonly errors?: readonly { readonly field: string; readonly message: string }[];
}

async function fieldsOf(answer: Response): Promise<readonly string[]> {
  const { errors = [] } = (await answer.json()) as Problem;
  return errors.map(({ field }) => field);
}

describe.each(STORES)('with the $kind store', ({ store }) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ store: store() });
  });
  afterAll(() => gateway.close());

  it('it has spent its points, carries the RateLimit fields, and the upstream saw nothing', async () => {
    const before = remainingOf(await gateway.send('GET', '/v3/things')) ?? {};
    const seen = gateway.upstream.seen.length;
    const answer = await gateway.send('GET', '/v3/lists?page[size]=101&pageSize=5&filter[name][eq]=x');
    expect(answer.status).toBe(422);
    expect(answer.headers.get('Content-Type')).toBe('application/problem+json');
    expect(remainingOf(answer)).toEqual({
      'account-read': (before['account-read'] ?? 0) - 1,
      'organization-read': (before['organization-read'] ?? 0) - 1,
    });
    expect(answer.headers.get('RateLimit-Policy')).toContain('"account-read";q=20;w=60');
    expect(answer.headers.get('Retry-After')).toBeNull();
    expect(await answer.json()).toEqual({
      type: 'https://api.example.com/errors/validation-error',
      title: 'Validation Error',
      status: 422,
      detail: expect.any(String),
      code: 'ValidationError',
      requestId: answer.headers.get('X-Request-Id'),
      extensions: {},
      errors: [
        { field: 'pageSize', message: 'is not supported: the parameter is page[size]' },
        { field: 'filter[name][eq]', message: 'is not a parameter of this operation' },
        { field: 'page[size]', message: 'must be <= 100' },
      ],
    });
    expect(gateway.upstream.seen).toHaveLength(seen);
  });

  it('once the bucket is full, a request that is not valid gets the 429 that a valid one gets', async () => {
    for (let count = 0; count < 20; count++) {
      expect((await gateway.send('GET', '/v3/explicit?limit=1', { token: 'lonely' })).status).toBe(422);
    }
    expect((await gateway.send('GET', '/v3/explicit?limit=1', { token: 'lonely' })).status).toBe(429);
  });
});

describe('what is validated', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    const limits = { defaults: Object.fromEntries(BUCKETS.map((bucket) => [bucket, 1000])) };
    const upstream = await startUpstream((request, response) => request.pipe(response));
    gateway = await startGateway({ limits, upstream });
  });
  afterAll(() => gateway.close());

  const key = { 'Idempotency-Key': 'k1' };
  const json = { ...key, 'Content-Type': 'application/json' };
  const put = (path: string, body: string | undefined, headers: Record<string, string> = json) =>
    gateway.send('PUT', path, { headers, ...(body === undefined ? {} : { body }) });

  it('a valid query is forwarded as it was sent', async () => {
    const search = '?page%5Bsize%5D=5&page[token]=a%2Bb&filter[status][eq]=caf%C3%A9';
    expect((await gateway.send('GET', `/v3/lists${search}`)).status).toBe(200);
    expect(gateway.upstream.seen.at(-1)?.url).toBe(`/v3/lists${search}`);
  });

  it('an operation that declares no query parameter is not described: its query passes unless validate is written', async () => {
    expect((await gateway.send('GET', '/v3/things?limit=1')).status).toBe(200);
    expect(await fieldsOf(await gateway.send('GET', '/v3/explicit?limit=1'))).toEqual(['limit']);
  });

  it('HEAD is validated like GET', async () => {
    expect((await gateway.send('HEAD', '/v3/lists?limit=1')).status).toBe(422);
  });

  it('an operation with validate: false, an unlisted one and OPTIONS take anything', async () => {
    expect((await gateway.send('GET', '/v3/unchecked?limit=1&page[size]=x')).status).toBe(200);
    expect((await gateway.send('GET', '/v3/unknown?limit=1')).status).toBe(200);
    expect((await gateway.send('OPTIONS', '/v3/things?limit=1')).status).toBe(200);
  });

  it('path and header parameters, all at once', async () => {
    expect(await fieldsOf(await put('/v3/strict/other?x=1', '{}', {}))).toEqual([
      'thingId',
      'x',
      'Idempotency-Key',
    ]);
    expect(await fieldsOf(await put('/v3/strict/th_a', '{}', { 'Idempotency-Key': 'longer' }))).toEqual([
      'Idempotency-Key',
    ]);
  });

  it('a valid body reaches the upstream byte by byte, chunked or not', async () => {
    const body = '{ "name": "ü",\n "parts": [1, 2] }';
    const whole = await put('/v3/strict/th_a', body);
    expect([whole.status, await whole.text()]).toEqual([200, body]);
    expect(gateway.upstream.seen.at(-1)?.headers['content-length']).toBe(`${Buffer.byteLength(body)}`);
    const chunks = new Blob([body]).stream();
    const answer = await fetch(`${gateway.url}/v3/strict/th_a`, {
      method: 'PUT',
      headers: { ...json, Authorization: 'Bearer service' },
      body: chunks,
      duplex: 'half',
    } as RequestInit);
    expect([answer.status, await answer.text()]).toEqual([200, body]);
  });

  it.each([
    ['{"parts":["x",2,"y"],"nme":1}', ['name', 'nme', 'parts[0]', 'parts[2]']],
    ['{"name":"long"}', ['name']],
    ['[]', ['body']],
    ['{', ['body']],
    ['\uFEFF{"name":"a"}', ['body']],
  ])('the body %j is refused for %j', async (body, fields) => {
    const seen = gateway.upstream.seen.length;
    const answer = await put('/v3/strict/th_a', body);
    expect(answer.status).toBe(422);
    expect(remainingOf(answer)).not.toBeNull();
    expect([...(await fieldsOf(answer))].sort()).toEqual(fields);
    expect(gateway.upstream.seen).toHaveLength(seen);
  });

  it('a missing body, another media type and an encoded body are refused; a declared type other than JSON is not read', async () => {
    expect(await fieldsOf(await put('/v3/strict/th_a', undefined))).toEqual(['body']);
    expect(
      await fieldsOf(await put('/v3/strict/th_a', '<a/>', { ...key, 'Content-Type': 'text/xml' })),
    ).toEqual(['Content-Type']);
    expect(
      await fieldsOf(await put('/v3/strict/th_a', 'x', { ...json, 'Content-Encoding': 'gzip' })),
    ).toEqual(['Content-Encoding']);
    expect(
      (await put('/v3/strict/th_a', 'a,b', { ...key, 'Content-Type': 'text/csv; header=absent' })).status,
    ).toBe(200);
  });

  it.each([
    'charset=utf-16',
    'charset=UTF-16LE',
    'charset="utf-16"',
    'charset="ut\\f-16"',
    'Charset=UTF-32',
    'charset=iso-8859-1',
    'charset=us-ascii',
    'charset=utf-7',
    'charset=',
    'charset',
    'charset = utf-16',
    "charset*=utf-16''x",
    'charset=utf-8; charset=utf-16',
    'v=1;charset=utf-16',
    'v="a;charset=utf-16"',
    'boundary=x; charset=utf-16; q=1',
    'profile="x" charset=utf-16',
    'profile=x,charset=utf-16',
  ])('JSON with %s is refused, because it could be read with another encoding', async (parameters) => {
    const body = Buffer.from('{"name":"ü"}', 'utf16le');
    for (const sent of ['{"name":"ab"}', body]) {
      const seen = gateway.upstream.seen.length;
      const answer = await fetch(`${gateway.url}/v3/strict/th_a`, {
        method: 'PUT',
        headers: {
          ...key,
          Authorization: 'Bearer service',
          'Content-Type': `application/json; ${parameters}`,
        },
        body: sent,
      });
      expect([answer.status, await fieldsOf(answer)]).toEqual([422, ['Content-Type']]);
      expect(remainingOf(answer), 'a request that fails validation has spent its points').not.toBeNull();
      expect(gateway.upstream.seen).toHaveLength(seen);
    }
  });

  it.each(['charset=utf-8', 'charset=UTF-8', 'charset="utf-8"', 'v=1; charset=utf8', 'v="a;b"'])(
    'JSON with %s is UTF-8',
    async (parameters) => {
      const type = { ...key, 'Content-Type': `application/json;${parameters}` };
      expect((await put('/v3/strict/th_a', '{"name":"ü"}', type)).status).toBe(200);
    },
  );

  it.each(['utf16le', 'utf-16 with a byte order mark', 'utf-8 with a byte order mark', 'latin1'])(
    'a JSON body in %s that names no charset is refused',
    async (encoding) => {
      const text = '{"name":"ü"}';
      const bytes: Readonly<Record<string, Buffer>> = {
        utf16le: Buffer.from(text, 'utf16le'),
        'utf-16 with a byte order mark': Buffer.from(`\ufeff${text}`, 'utf16le'),
        'utf-8 with a byte order mark': Buffer.from(`\ufeff${text}`),
        latin1: Buffer.from(text, 'latin1'),
      };
      const answer = await fetch(`${gateway.url}/v3/strict/th_a`, {
        method: 'PUT',
        headers: { ...json, Authorization: 'Bearer service' },
        body: bytes[encoding] ?? '',
      });
      expect([answer.status, await fieldsOf(answer)]).toEqual([422, ['body']]);
    },
  );

  it('a body above the bound gets a 413 that has spent its points', async () => {
    const answer = await put('/v3/strict/th_a', JSON.stringify({ name: 'x'.repeat(300_000) }));
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ code: 'PayloadTooLarge' });
    expect(remainingOf(answer)).not.toBeNull();
  });
});

const BUCKETS = [
  'account-read',
  'account-write',
  'organization-read',
  'organization-write',
  'person-read',
  'person-write',
];
