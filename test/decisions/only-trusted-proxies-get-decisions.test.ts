import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DECISIONS, PROTOCOLS, sendPlain } from '../fixtures/decisions.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

const SERVICE = { Authorization: 'Bearer lonely' };

/** What is left of the Account's points for writes. */
const left = (header: unknown) => Number(/"account-write";r=(\d+)/.exec(`${header}`)?.[1]);

describe('an address that is not trusted', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ settings: { decisions: { ...DECISIONS, trusted: ['192.0.2.0/24'] } } });
  });
  afterAll(() => gateway.close());

  it.each(Object.entries(PROTOCOLS))('gets a 403 with %s', async (_, ask) => {
    const answer = await ask(gateway.decisionsUrl, 'POST', '/v3/reports', SERVICE);
    expect(answer.status).toBe(403);
    expect(answer.headers).not.toHaveProperty('ratelimit');
    expect(JSON.parse(answer.body)).toMatchObject({
      code: 'Forbidden',
      detail: 'Only the proxies in decisions.trusted may ask for decisions; this address is not one of them.',
    });
  });

  it('spends nothing', async () => {
    const { headers } = await sendPlain(gateway.url, 'POST', '/v3/things', SERVICE);
    expect(left(headers.ratelimit)).toBe(19);
  });
});

describe('a question', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({
      settings: { decisions: DECISIONS },
      limits: { accounts: { acct_3: { 'account-write': 1000 } } },
    });
  });
  afterAll(() => gateway.close());

  const CHEAP = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/v3/things' };

  it('is not changed by fields of another protocol, which a client may have written', async () => {
    const envoy = await sendPlain(gateway.decisionsUrl, 'POST', '/ext-authz/v3/reports', {
      ...SERVICE,
      ...CHEAP,
    });
    expect([envoy.status, left(envoy.headers.ratelimit)]).toEqual([200, 993]);
    const original = { ...CHEAP, 'X-Original-Method': 'POST', 'X-Original-URI': '/v3/reports' };
    const nginx = await sendPlain(gateway.decisionsUrl, 'GET', '/auth-request', { ...SERVICE, ...original });
    expect([nginx.status, left(nginx.headers.ratelimit)]).toEqual([200, 986]);
  });

  it.each([
    'X-Original-URI',
    'X-Rewrite-URL',
    'Path-Info',
    'X_Account_Id',
    'X.Service.Account',
    'Content_Length',
    'Proxy',
  ])('whose %s the service could misread is refused, because the proxy would forward it', async (name) => {
    const asked = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/v3/things', [name]: '1' };
    for (const path of ['/forward-auth', '/ext-authz/v3/things']) {
      const answer = await sendPlain(gateway.decisionsUrl, 'GET', path, { ...SERVICE, ...asked });
      expect([path, answer.status, answer.body]).toEqual([path, 400, expect.stringContaining(name)]);
    }
  });

  it('may have the fields that its proxy adds', async () => {
    const rewritten = { ...SERVICE, 'X-Envoy-Original-Path': '/v3/other' };
    expect((await sendPlain(gateway.decisionsUrl, 'GET', '/ext-authz/v3/things', rewritten)).status).toBe(
      200,
    );
    const ingress = {
      'X-Original-Method': 'GET',
      'X-Original-URI': '/v3/things',
      'X-Original-URL': 'http://a/v3/things',
    };
    const answer = await sendPlain(gateway.decisionsUrl, 'GET', '/auth-request', { ...SERVICE, ...ingress });
    expect(answer.status).toBe(200);
  });

  it.each([
    ['without its method', { 'X-Forwarded-Uri': '/v3/things' }, 400, 'X-Forwarded-Method exactly once'],
    ['without its target', { 'X-Forwarded-Method': 'GET' }, 400, 'X-Forwarded-Uri exactly once'],
    [
      'with two targets',
      { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': ['/v3/reports', '/v3/things'] },
      400,
      'X-Forwarded-Uri exactly once',
    ],
    [
      'about an unusable host',
      { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/v3/things', 'X-Forwarded-Host': 'a b' },
      400,
      'not a valid host',
    ],
    [
      'about a method that the gateway does not serve',
      { 'X-Forwarded-Method': 'constructor', 'X-Forwarded-Uri': '/v3/things' },
      405,
      'does not serve this method',
    ],
    [
      'with the method override of another protocol',
      { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/v3/things', 'X-Original-Method': 'GET' },
      400,
      'X-Original-Method',
    ],
  ])('%s is refused', async (_, fields, status, detail) => {
    const answer = await sendPlain(gateway.decisionsUrl, 'GET', '/forward-auth', { ...SERVICE, ...fields });
    expect([answer.status, answer.body]).toEqual([status, expect.stringContaining(detail)]);
  });

  it.each(['/', '/v3/things', '/ext-authz', '/ext-authzx/v3/things', '/forward-auth/v3/things'])(
    'at %s is a 404 that names the paths',
    async (path) => {
      const answer = await sendPlain(gateway.decisionsUrl, 'GET', path, SERVICE);
      expect([answer.status, answer.body]).toEqual([404, expect.stringContaining('at /auth-request')]);
    },
  );
});

it('without a prefix for ext_authz, every path is the original one', async () => {
  const settings = { decisions: { ...DECISIONS, extAuthzPrefix: '' } };
  const gateway = await startGateway({ settings });
  const posted = await sendPlain(gateway.decisionsUrl, 'POST', '/v3/reports', SERVICE);
  expect(left(posted.headers.ratelimit)).toBe(13);
  const fields = { 'X-Forwarded-Method': 'POST', 'X-Forwarded-Uri': '/v3/reports' };
  const forwardAuth = await sendPlain(gateway.decisionsUrl, 'POST', '/forward-auth', {
    ...SERVICE,
    ...fields,
  });
  expect(left(forwardAuth.headers.ratelimit)).toBe(12);
  await gateway.close();
});
