import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { type Claims, introspectionSettings, startIssuer, type TestIssuer } from '../fixtures/issuer.ts';

let issuer: TestIssuer;
let gateway: TestGateway | undefined;

beforeEach(async () => {
  issuer = await startIssuer();
});
afterEach(async () => {
  await gateway?.close();
  await issuer.close();
  gateway = undefined;
});

const PERSON = { active: true, sub: 'person_1', type: 'Person', account: 'acct_1' };

async function start(identity: Claims = {}): Promise<void> {
  gateway = await startGateway({ settings: introspectionSettings(issuer, identity), limits: PLENTY });
}

async function statusOf(token: string): Promise<number> {
  return ((await gateway?.send('GET', '/v3/things', { token })) ?? Response.error()).status;
}

const asked = (token: string) => issuer.introspected.filter((one) => one.token === token).length;

it('an active token is introspected once, with client authentication', async () => {
  issuer.tokens.set('good', PERSON);
  await start();
  expect(await Promise.all(Array.from({ length: 20 }, () => statusOf('good')))).toEqual(Array(20).fill(200));
  expect(await statusOf('good')).toBe(200);
  expect(asked('good')).toBe(1);
  expect(gateway?.upstream.seen.at(-1)?.headers).toMatchObject({
    'x-account-id': 'acct_1',
    'x-principal-id': 'person_1',
  });
  const { authorization = '' } = issuer.introspected[0] ?? {};
  // RFC 6749 section 2.3.1: id and secret are form-encoded first.
  expect(Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()).toBe(
    'weir:s3cret%3A+%C3%BC',
  );
});

it('the secret can be sent in the body', async () => {
  issuer.tokens.set('good', PERSON);
  await start({ clientAuthentication: 'post' });
  expect(await statusOf('good')).toBe(200);
  expect(issuer.introspected[0]?.authorization).toBeUndefined();
});

it('an inactive token is a 401, and is cached for a while', async () => {
  await start();
  for (let count = 0; count < 5; count++) expect(await statusOf('bad')).toBe(401);
  expect(asked('bad')).toBe(1);
});

const UNFIT: readonly (readonly [string, Claims])[] = [
  ['another issuer', { iss: 'https://evil.example.com' }],
  ['another audience', { aud: ['https://other.example.com'] }],
  ['no audience', { aud: undefined }],
  ['not yet valid', { nbf: Date.now() / 1000 + 60 }],
  ['expired', { exp: Date.now() / 1000 - 60 }],
  ['not yet valid, in digits', { nbf: `${Math.round(Date.now() / 1000) + 60}` }],
  ['expired, in digits', { exp: `${Math.round(Date.now() / 1000) - 60}` }],
  ['no principal', { sub: undefined }],
];

it('an answer that does not fit is no identity', async () => {
  const sound = { ...PERSON, iss: 'https://issuer.example.com', aud: 'https://api.example.com' };
  issuer.tokens.set('sound', sound);
  for (const [index, [, claims]] of UNFIT.entries())
    issuer.tokens.set(`odd-${index}`, { ...sound, ...claims });
  await start({ issuer: 'https://issuer.example.com', audience: ['https://api.example.com'] });
  expect(await statusOf('sound')).toBe(200);
  for (const [index, [what]] of UNFIT.entries()) expect(await statusOf(`odd-${index}`), what).toBe(401);
  expect(gateway?.upstream.seen).toHaveLength(1);
});

it('an answer in a form of its own is no answer', async () => {
  const odd = [{ active: 'true' }, { exp: '2020-01-01T00:00:00Z' }, { exp: {} }, { nbf: 'soon' }];
  for (const [index, claims] of odd.entries()) issuer.tokens.set(`odd-${index}`, { ...PERSON, ...claims });
  await start();
  for (const [index, claims] of odd.entries())
    expect(await statusOf(`odd-${index}`), JSON.stringify(claims)).toBe(503);
  issuer.tokens.set('null', { ...PERSON, exp: null, nbf: null });
  expect(await statusOf('null')).toBe(200);
});

it('a token that is not valid yet is accepted when it is, and not asked about before', async () => {
  issuer.tokens.set('early', { ...PERSON, nbf: Date.now() / 1000 + 3 });
  issuer.tokens.set('later', { ...PERSON, nbf: Date.now() / 1000 + 3_600 });
  await start({ negativeCacheSeconds: 3_600 });
  for (const token of ['early', 'early', 'later', 'later']) expect(await statusOf(token)).toBe(401);
  await vi.waitFor(async () => expect(await statusOf('early')).toBe(200), { timeout: 60_000, interval: 50 });
  expect(await statusOf('later')).toBe(401);
  expect([asked('early'), asked('later')]).toEqual([2, 1]);
});

it.each([
  ['is gone', 0],
  ['fails', 500],
  ["refuses the gateway's own credentials", 401],
])('when the provider %s, known callers go on and unknown ones get a 503', async (_how, status) => {
  issuer.tokens.set('known', PERSON);
  await start({ cacheSeconds: 0 });
  expect(await statusOf('known')).toBe(200);
  issuer.failWith = status;
  for (let count = 0; count < 5; count++) {
    expect(await statusOf('known')).toBe(200);
    expect(await statusOf('unknown')).toBe(503);
  }
  expect(gateway?.upstream.seen).toHaveLength(6);
  issuer.failWith = undefined;
  issuer.tokens.delete('known');
  await vi.waitFor(async () => expect(await statusOf('known')).toBe(401), { timeout: 60_000, interval: 50 });
});

it('a connection that ends instead of an answer costs a second call, not the request', async () => {
  issuer.tokens.set('good', PERSON);
  await start();
  issuer.cuts = 1;
  expect(await statusOf('good')).toBe(200);
  expect(asked('good')).toBe(2);
  issuer.cuts = 2;
  expect(await statusOf('other')).toBe(503);
  expect(asked('other')).toBe(2);
});

it('not every request waits for a provider that hangs', async () => {
  issuer.tokens.set('known', PERSON);
  await start({ cacheSeconds: 0, timeoutMs: 200 });
  expect(await statusOf('known')).toBe(200);
  let release = () => {};
  issuer.hold = new Promise((resolve) => {
    release = resolve;
  });
  const tokens = Array.from({ length: 30 }, (_, index) => `unknown-${index}`);
  for (const token of tokens) expect(await statusOf(token)).toBe(503);
  expect(await statusOf('known')).toBe(200);
  // Each token that was introspected waited for the time-out.
  expect(tokens.filter((token) => asked(token) > 0).length).toBeLessThan(15);
  release();
});

it('a token is never used past its end, whatever the cache allows', async () => {
  await start({ cacheSeconds: 600 });
  issuer.tokens.set('short', { ...PERSON, exp: Date.now() / 1000 + 2 });
  expect(await statusOf('short')).toBe(200);
  issuer.failWith = 0;
  await vi.waitFor(async () => expect(await statusOf('short')).toBe(503), { timeout: 60_000, interval: 50 });
});
