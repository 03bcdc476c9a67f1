import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IDENTITY_FIELDS } from '../../src/http/message/head/field-names.ts';
import { DECISIONS, type PlainAnswer, PROTOCOLS, sendPlain } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startUpstream } from '../fixtures/upstream.ts';

const PUBLIC = [{ method: 'GET', path: '/open', public: true }];

let gateway: TestGateway;
beforeAll(async () => {
  const upstream = await startUpstream();
  gateway = await startGateway({
    upstream,
    settings: {
      decisions: DECISIONS,
      operations: { openapi: 'openapi.yaml', unlisted: 'reject', list: PUBLIC },
      upstream: { url: upstream.url, pathProfile: { trailingSlash: 'refuse' } },
    },
    limits: {
      accounts: { acct_3: { 'account-write': 20 }, acct_2: { 'account-read': 1_000_000 } },
      organizations: { org_1: { 'organization-read': 1_000_000 } },
    },
  });
});
afterAll(() => gateway.close());

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

/** What a client sees of a refusal; seconds that pass between two requests are left out. */
function shown({ status, headers, body }: PlainAnswer) {
  const { date: _, connection: __, 'keep-alive': ___, ...rest } = headers;
  const withoutTime = Object.entries(rest).map(([name, value]) => [
    name,
    name === 'retry-after' ? 'seconds' : `${value}`.replaceAll(/;t=\d+/g, ''),
  ]);
  return { status, headers: Object.fromEntries(withoutTime), body: problemIn(body) };
}

const problemIn = (body: string) => body.replace(/ in \d+ s\./, '');

const REFUSED: readonly (readonly [string, number, string, string, Readonly<Record<string, string>>])[] = [
  ['no token', 401, 'GET', '/v3/things', {}],
  ['an unknown token', 401, 'GET', '/v3/things', bearer('nobody')],
  ['a foreign Account', 403, 'GET', '/v3/things', { ...bearer('lonely'), 'X-Service-Account': 'acct_1' }],
  [
    'an Account that is not named',
    400,
    'GET',
    '/v3/things',
    { ...bearer('lonely'), 'X-Service-Account': '' },
  ],
  ['an unknown operation', 404, 'GET', '/v3/other', bearer('lonely')],
  ['an ambiguous path', 400, 'GET', '/v3/reports/../things', bearer('lonely')],
  ['an encoded slash', 400, 'GET', '/v3%2Fthings', bearer('lonely')],
  ['a trailing slash, where the profile refuses it', 400, 'GET', '/v3/things/', bearer('lonely')],
  [
    'an overriding method',
    400,
    'POST',
    '/v3/things',
    { ...bearer('lonely'), 'X-HTTP-Method-Override': 'GET' },
  ],
  ['an empty bucket', 429, 'POST', '/v3/reports', bearer('lonely')],
];

describe('a refusal', () => {
  beforeAll(async () => {
    for (let count = 0; count < 2; count++) {
      const { status } = await sendPlain(gateway.url, 'POST', '/v3/reports', bearer('lonely'));
      expect(status).toBe(200);
    }
  });

  describe.each(Object.entries(PROTOCOLS).slice(0, 2))('with %s', (_, ask) => {
    it.each(REFUSED)('for %s is the %i of the gateway', async (__, status, method, target, headers) => {
      const named = { ...headers, Host: 'api.example.com', 'X-Request-Id': 'the-request.1' };
      const own = await sendPlain(gateway.url, method, target, named);
      const asked = await ask(gateway.decisionsUrl, method, target, named);
      expect(own.status).toBe(status);
      expect(shown(asked)).toEqual(shown(own));
    });
  });

  it.each(REFUSED)(
    'with auth-request for %s has the %i in fields',
    async (_, status, method, target, headers) => {
      const named = { ...headers, Host: 'api.example.com', 'X-Request-Id': 'the-request.1' };
      const own = await sendPlain(gateway.url, method, target, named);
      const asked = await PROTOCOLS['auth-request']?.(gateway.decisionsUrl, method, target, named);
      expect(asked?.status).toBe(status === 401 ? 401 : 403);
      expect(asked?.headers).toMatchObject({ 'x-weir-status': `${status}`, 'x-request-id': 'the-request.1' });
      expect(problemIn(`${asked?.headers['x-weir-problem']}`)).toBe(problemIn(own.body));
      const same = ['ratelimit-policy', 'www-authenticate', 'content-type'] as const;
      for (const name of same) expect([name, asked?.headers[name]]).toEqual([name, own.headers[name]]);
      expect('retry-after' in (asked?.headers ?? {})).toBe(status === 429);
    },
  );
});

describe.each(Object.entries(PROTOCOLS))('an admitted request, with %s,', (protocol, ask) => {
  it('is charged like any, and names the caller for the upstream', async () => {
    const before = await remaining('organization');
    const answer = await ask(gateway.decisionsUrl, 'GET', '/v3/reports?page=1', {
      ...bearer('organization'),
      'X-Service-Account': 'acct_2',
      'X-Request-Id': 'admitted.1',
    });
    expect(answer).toMatchObject({ status: 200, body: '' });
    expect(answer.headers).toMatchObject({
      'x-account-id': 'acct_2',
      'x-organization-id': 'org_1',
      'x-principal-id': 'svc_org',
      'x-principal-type': 'ServiceAccount',
      'x-request-id': 'admitted.1',
      'ratelimit-policy': expect.stringContaining('"account-read";q=1000000;w=60'),
      ratelimit: expect.stringContaining(`"account-read";r=${before - 10};`),
    });
    expect(gateway.upstream.seen.some(({ url }) => url.startsWith('/v3/reports?'))).toBe(false);
    expect(answer.headers['x-envoy-auth-headers-to-remove']).toBe(
      protocol === 'ext-authz' ? 'x-client-certificate-subject' : undefined,
    );
  });

  it('is charged to the address of the client where the operation is public', async () => {
    const client = `203.0.113.${Object.keys(PROTOCOLS).indexOf(protocol)}`;
    for (const left of [9, 8]) {
      const headers = { 'X-Forwarded-For': `192.0.2.${left}, ${client}, 127.0.0.1` };
      const { status, headers: given } = await ask(gateway.decisionsUrl, 'GET', '/open', headers);
      expect([status, given.ratelimit]).toEqual([200, expect.stringContaining(`"address-read";r=${left};`)]);
      expect(given).not.toHaveProperty('x-account-id');
    }
  });

  it('may ask to upgrade the connection', async () => {
    const headers = { ...bearer('organization'), 'X-Service-Account': 'acct_2' };
    const upgrade = { ...headers, Connection: 'Upgrade', Upgrade: 'websocket' };
    expect((await ask(gateway.decisionsUrl, 'GET', '/v3/things', upgrade)).status).toBe(200);
  });

  it('needs no token where the operation is free', async () => {
    const answer = await ask(gateway.decisionsUrl, 'OPTIONS', '/v3/things');
    expect(answer.status).toBe(200);
    expect(answer.headers).not.toHaveProperty('ratelimit');
    expect(answer.headers).not.toHaveProperty('x-account-id');
    expect(answer.headers['x-envoy-auth-headers-to-remove']).toBe(
      protocol === 'ext-authz' ? [...IDENTITY_FIELDS, 'x-service-account'].join(',') : undefined,
    );
  });
});

it.each([
  ['an unknown method', 405, { 'X-Original-Method': 'PROPFIND', 'X-Original-URI': '/v3/things' }],
  ['no method', 400, { 'X-Original-URI': '/v3/things' }],
  ['no path', 400, { 'X-Original-Method': 'GET' }],
])('auth-request with %s is refused as nginx can take it', async (_, status, headers) => {
  const answer = await sendPlain(gateway.decisionsUrl, 'GET', '/auth-request', headers);
  expect([answer.status, answer.headers['x-weir-status']]).toEqual([403, `${status}`]);
  expect(JSON.parse(`${answer.headers['x-weir-problem']}`)).toMatchObject({ status });
});

it.each([
  ['http://api.example.com/v3/reports?page=1', 200],
  ['/v3/reports?page=1', 200],
  ['http://api.example.com/v3/things', 403],
  ['http://api.example.com/v3/reports?page=2', 403],
  ['/v3/things', 403],
  ['', 403],
])('auth-request with the X-Original-URL %s of a client is answered with %i', async (url, status) => {
  const answer = await PROTOCOLS['auth-request']?.(gateway.decisionsUrl, 'GET', '/v3/reports?page=1', {
    ...bearer('organization'),
    'X-Service-Account': 'acct_2',
    'X-Original-URL': url,
  });
  expect(answer?.status).toBe(status);
  expect(answer?.headers['x-weir-status']).toBe(status === 403 ? '400' : undefined);
});

async function remaining(token: string): Promise<number> {
  const { headers } = await sendPlain(gateway.url, 'GET', '/v3/things', {
    ...bearer(token),
    'X-Service-Account': 'acct_2',
  });
  return Number(/"account-read";r=(\d+)/.exec(`${headers.ratelimit}`)?.[1]);
}
