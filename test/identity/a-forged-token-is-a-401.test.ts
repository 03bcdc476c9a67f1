import { base64url, type CryptoKey, exportSPKI, generateKeyPair, importJWK } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { jwtSettings, signWith, startIssuer, type TestIssuer } from '../fixtures/issuer.ts';
import { sendRaw } from '../fixtures/raw.ts';

let issuer: TestIssuer;
/** Never to be asked: tokens name it. */
let attacker: TestIssuer;
let gateway: TestGateway;

beforeAll(async () => {
  [issuer, attacker] = await Promise.all([startIssuer(), startIssuer()]);
  gateway = await startGateway({
    settings: { ...jwtSettings(issuer), log: { level: 'info' } },
    limits: PLENTY,
  });
});
afterAll(() => Promise.all([gateway.close(), issuer.close(), attacker.close()]));

const nowSeconds = Math.floor(Date.now() / 1000);

const encode = (value: unknown): string => base64url.encode(JSON.stringify(value));

function withHeader(token: string, header: object): string {
  const [, payload, signature] = token.split('.');
  return [encode(header), payload, signature].join('.');
}

function withClaims(token: string, claims: object): string {
  const [header = '', payload = '', signature] = token.split('.');
  const read = JSON.parse(new TextDecoder().decode(base64url.decode(payload)));
  return [header, encode({ ...read, ...claims }), signature].join('.');
}

/** The classic confusion: the public key, which anybody has, taken for a shared secret. */
async function hs256WithPublicKey(form: 'pem' | 'jwk'): Promise<string> {
  const jwk = issuer.publicKey();
  const key = (await importJWK(jwk, 'RS256')) as CryptoKey;
  const secret = form === 'pem' ? await exportSPKI(key) : JSON.stringify(jwk);
  return signWith(new TextEncoder().encode(secret), jwk.kid, {}, { alg: 'HS256' });
}

async function signedByAttacker(header: object): Promise<string> {
  const { privateKey } = await generateKeyPair('RS256');
  return signWith(privateKey, issuer.publicKey().kid, {}, header);
}

/** Each with the reason that the log has. */
const ATTACKS: readonly (readonly [string, string, () => string | Promise<string>])[] = [
  ['a key that the issuer does not have', 'unknown-key', () => signedByAttacker({ kid: 'of nobody' })],
  [
    'alg none',
    'signature',
    async () => `${withHeader(await issuer.sign(), { alg: 'none' })}`.replace(/[^.]*$/, ''),
  ],
  ['alg none with a signature', 'signature', async () => withHeader(await issuer.sign(), { alg: 'none' })],
  ['alg NONE', 'signature', async () => withHeader(await issuer.sign(), { alg: 'NONE' })],
  ['HS256 with the public key in PEM', 'signature', () => hs256WithPublicKey('pem')],
  ['HS256 with the public key as a JWK', 'signature', () => hs256WithPublicKey('jwk')],
  ['another issuer', 'issuer', () => issuer.sign({ iss: 'https://evil.example.com' })],
  ['no issuer', 'issuer', () => issuer.sign({ iss: null })],
  ['another audience', 'audience', () => issuer.sign({ aud: 'https://other.example.com' })],
  ['no audience', 'audience', () => issuer.sign({ aud: null })],
  ['expired', 'expired', () => issuer.sign({ exp: nowSeconds - 60 })],
  ['without an end', 'malformed', () => issuer.sign({ exp: null })],
  ['an end that is no number', 'malformed', () => issuer.sign({ exp: '9999999999' })],
  ['not yet valid', 'not-yet-valid', () => issuer.sign({ nbf: nowSeconds + 300 })],
  ['a beginning that is no number', 'malformed', () => issuer.sign({ nbf: 'soon' })],
  ['tampered claims', 'signature', async () => withClaims(await issuer.sign(), { account: 'acct_2' })],
  ['a tampered signature', 'signature', async () => (await issuer.sign()).replace(/.{8}$/, 'AAAAAAAA')],
  ['no signature', 'signature', async () => (await issuer.sign()).replace(/[^.]*$/, '')],
  ['two parts', 'malformed', async () => (await issuer.sign()).replace(/\.[^.]*$/, '')],
  ['oversized', 'malformed', async () => `${await issuer.sign()}${'A'.repeat(9000)}`],
  ['a key of the attacker', 'signature', () => signedByAttacker({})],
  [
    'a key that the token brings along (jwk)',
    'signature',
    () => signedByAttacker({ jwk: attacker.publicKey() }),
  ],
  ['a key set that the token names (jku)', 'signature', () => signedByAttacker({ jku: attacker.jwksUrl })],
  [
    'a certificate that the token names (x5u)',
    'signature',
    () => signedByAttacker({ x5u: attacker.jwksUrl }),
  ],
  ['an unknown critical header', 'signature', () => issuer.sign({}, { crit: ['critical'], critical: 1 })],
  ['no principal', 'no-account', () => issuer.sign({ sub: null })],
  ['a principal that is no text', 'no-account', () => issuer.sign({ sub: 42 })],
  ['a Person without an Account', 'no-account', () => issuer.sign({ account: null, organization: 'org_1' })],
  ['an unknown type', 'no-account', () => issuer.sign({ type: 'Admin' })],
  [
    'an Account with a line break',
    'no-account',
    () => issuer.sign({ account: 'acct_1\r\nX-Account-Id: acct_2' }),
  ],
  ['a broken list of Accounts', 'no-account', () => issuer.sign({ actsFor: [{ account: 7 }] })],
  ['no token at all', 'malformed', () => 'demo'],
];

const INVALID = {
  type: 'https://api.example.com/errors/unauthenticated',
  title: 'Unauthenticated',
  status: 401,
  detail: 'The access token is not valid.',
  code: 'Unauthenticated',
  extensions: {},
};

/** The reason in the log line of a request. */
async function reasonOf(requestId: string): Promise<unknown> {
  const find = () => gateway.lines.find((line) => line.includes(`"requestId":"${requestId}"`));
  await expect.poll(find, { timeout: 10_000 }).toBeDefined();
  return (JSON.parse(find() ?? '{}') as { reason?: unknown }).reason;
}

it('a valid token is accepted', async () => {
  const answer = await gateway.send('GET', '/v3/things', { token: await issuer.sign() });
  expect(answer.status).toBe(200);
  expect(gateway.upstream.seen.at(-1)?.headers['x-account-id']).toBe('acct_1');
});

it.each(ATTACKS)(
  '%s is logged as %s, and the client learns nothing of it',
  async (_attack, reason, forge) => {
    const before = gateway.upstream.seen.length;
    const token = await forge();
    const answer = await gateway.send('GET', '/v3/things', { token });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('WWW-Authenticate')).toMatch(/^Bearer realm="weir", error="invalid_token"/);
    expect(answer.headers.get('RateLimit')).toBeNull();
    const { requestId, ...problem } = (await answer.json()) as { requestId: string };
    expect(problem).toEqual(INVALID);
    expect(await reasonOf(requestId)).toBe(reason);
    const again = await gateway.send('GET', '/v3/things', { token });
    expect(await reasonOf(again.headers.get('X-Request-Id') ?? '')).toBe(reason);
    expect(gateway.upstream.seen).toHaveLength(before);
    expect(attacker.asked.size).toBe(0);
  },
);

const SCHEMES: readonly (readonly [string, (token: string) => string])[] = [
  ['two tokens in one header', (token) => `Authorization: Bearer ${token}, Bearer ${token}`],
  ['no scheme', (token) => `Authorization: ${token}`],
  ['Basic', (token) => `Authorization: Basic ${token}`],
  ['two spaces', (token) => `Authorization: Bearer  ${token}`],
  ['an empty token', () => 'Authorization: Bearer '],
  ['an empty header', () => 'Authorization:'],
  ['a token in the query', (token) => `X-Access-Token: ${token}`],
];

it.each(SCHEMES)('%s', async (_name, headerLines) => {
  const before = gateway.upstream.seen.length;
  const lines = `Host: weir\r\n${headerLines(await issuer.sign())}\r\nConnection: close`;
  const { statuses, text } = await sendRaw(gateway.url, `GET /v3/things HTTP/1.1\r\n${lines}\r\n\r\n`);
  expect(statuses).toEqual([401]);
  expect(text).toMatch(/\r\nWWW-Authenticate: Bearer realm="weir"/);
  expect(gateway.upstream.seen).toHaveLength(before);
});

it('a request without credentials is challenged without an error (RFC 6750 section 3.1)', async () => {
  const answer = await gateway.send('GET', '/v3/things', { token: null });
  expect(await reasonOf(answer.headers.get('X-Request-Id') ?? '')).toBe('missing');
  expect(answer.status).toBe(401);
  expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer realm="weir"');
});
