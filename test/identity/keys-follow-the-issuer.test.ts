import { generateKeyPairSync } from 'node:crypto';
import { base64url, type CryptoKey, exportJWK, generateKeyPair } from 'jose';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { type Claims, jwtSettings, signWith, startIssuer, type TestIssuer } from '../fixtures/issuer.ts';

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

const fetches = () => issuer.asked.get('/jwks') ?? 0;

async function start(identity: Claims = {}): Promise<TestGateway> {
  gateway = await startGateway({ settings: jwtSettings(issuer, identity), limits: PLENTY });
  return gateway;
}

async function statusOf(token: string): Promise<number> {
  return ((await gateway?.send('GET', '/v3/things', { token })) ?? Response.error()).status;
}

/** Expects the status of a new token to become this one before long. */
async function reachesStatus(status: number, sign: () => Promise<string>): Promise<void> {
  const expected = async () => expect(await statusOf(await sign())).toBe(status);
  await vi.waitFor(expected, { timeout: 60_000, interval: 100 });
}

/** To generate one takes 0.2 s of CPU. */
const pairs = Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')]);

/** Far more than fetches that are allowed, and than are sent at a time. */
const FORGED = 200;

/** A part of them at a time, because each that is sent at once has a connection of its own. */
async function statusesOf(tokens: readonly string[]): Promise<readonly number[]> {
  const left = [...tokens];
  const statuses: number[] = [];
  const senders = Array.from({ length: 50 }, async () => {
    for (let token = left.pop(); token !== undefined; token = left.pop())
      statuses.push(await statusOf(token));
  });
  await Promise.all(senders);
  return statuses;
}

it('hundreds of tokens with made-up keys cost at most two fetches', async () => {
  // A busy machine takes longer for all of them than the usual cooldown is.
  await start({ jwksCooldownSeconds: 600 });
  const [, claims, signature] = (await issuer.sign()).split('.');
  const forged = Array.from({ length: FORGED }, (_, index) => {
    const header = base64url.encode(JSON.stringify({ alg: 'RS256', kid: `kid-${index}` }));
    return [header, claims, signature].join('.');
  });
  const statuses = await statusesOf(forged);
  expect(new Set(statuses)).toEqual(new Set([401]));
  expect(fetches()).toBeLessThanOrEqual(2);
  expect(await statusOf(await issuer.sign())).toBe(200);
});

it('tokens that arrive together before there are keys wait for one fetch', async () => {
  let release = () => {};
  issuer.hold = new Promise((resolve) => {
    release = resolve;
  });
  await start();
  const tokens = await Promise.all(Array.from({ length: 20 }, () => issuer.sign()));
  const answers = Promise.all(tokens.map(statusOf));
  await vi.waitUntil(() => fetches() > 0, { timeout: 60_000 });
  release();
  expect(new Set(await answers)).toEqual(new Set([200]));
  expect(fetches()).toBe(1);
});

it('a rotated key is accepted within the cooldown', async () => {
  await start({ jwksCooldownSeconds: 1 });
  expect(await statusOf(await issuer.sign())).toBe(200);
  await issuer.rotate();
  await reachesStatus(200, () => issuer.sign());
});

it.each([
  ['replaces another one under its id', 'the only id'],
  ['has no id', undefined],
  ['has no id, while tokens name one,', undefined, 'named'],
])(
  'a key that %s is accepted within the cooldown, and the earlier one no longer',
  async (_what, kid, named = kid) => {
    const show = async (key: CryptoKey) => {
      const jwk = { ...(await exportJWK(key)), alg: 'RS256', use: 'sig', ...(kid !== undefined && { kid }) };
      issuer.odd.set('jwks', (response) => response.end(JSON.stringify({ keys: [jwk] })));
    };
    const [earlier, later] = await pairs;
    await show(earlier.publicKey);
    await start({ jwksCooldownSeconds: 1 });
    expect(await statusOf(await signWith(earlier.privateKey, named))).toBe(200);
    await show(later.publicKey);
    await reachesStatus(200, () => signWith(later.privateKey, named));
    expect(await statusOf(await signWith(earlier.privateKey, named))).toBe(401);
  },
);

it('hundreds of tokens with wrong signatures cost at most two fetches', async () => {
  await start({ jwksCooldownSeconds: 600 });
  const [header, , signature] = (await issuer.sign()).split('.');
  const forged = Array.from({ length: FORGED }, (_, index) =>
    [header, base64url.encode(JSON.stringify({ sub: `person_${index}` })), signature].join('.'),
  );
  const statuses = await statusesOf(forged);
  expect(new Set(statuses)).toEqual(new Set([401]));
  expect(fetches()).toBeLessThanOrEqual(2);
  expect(await statusOf(await issuer.sign())).toBe(200);
});

it('while the issuer is down its last good keys stay in force, and a new key is a 503', async () => {
  await start({ jwksCooldownSeconds: 1 });
  expect(await statusOf(await issuer.sign())).toBe(200);
  issuer.failWith = 500;
  const good = await issuer.sign();
  const before = fetches();
  await issuer.rotate();
  await reachesStatus(503, () => issuer.sign());
  expect(await statusOf(good)).toBe(200);
  expect(fetches() - before).toBeLessThanOrEqual(4);
  issuer.failWith = undefined;
  await reachesStatus(200, () => issuer.sign());
});

it('a broken key in the set does not exclude the good ones', async () => {
  const good = issuer.publicKey();
  const { kid, ...nameless } = good;
  const { n } = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' });
  const broken = [null, 7, 'key', {}, { kty: 7 }, { ...nameless, n: 7 }, { ...nameless, n }, { ...good, n }];
  const body = JSON.stringify({ keys: [...broken, good, nameless] });
  issuer.odd.set('jwks', (response) => response.end(body));
  const settings = { ...jwtSettings(issuer), log: { level: 'info' } };
  gateway = await startGateway({ settings, limits: PLENTY });
  expect(await statusOf(await issuer.sign())).toBe(200);
  expect(await statusOf(await issuer.sign({}, { kid: undefined } as object))).toBe(200);
  expect(gateway.lines.filter((line) => line.includes('members that are not keys'))).toEqual([
    expect.stringContaining('"ignored":5'),
  ]);
});

it.each([1, 2])('%i broken keys without an id do not hide that a key is new', async (count) => {
  const broken = Array(count).fill({ kty: 'RSA' });
  issuer.odd.set('jwks', (response) =>
    response.end(JSON.stringify({ keys: [...broken, issuer.publicKey()] })),
  );
  await start({ jwksCooldownSeconds: 1 });
  expect(await statusOf(await issuer.sign())).toBe(200);
  await issuer.rotate();
  await reachesStatus(200, () => issuer.sign());
});

it('a key set behind a byte order mark is read', async () => {
  const body = `\uFEFF${JSON.stringify({ keys: [issuer.publicKey()] })}`;
  issuer.odd.set('jwks', (response) => response.end(body));
  await start();
  expect(await statusOf(await issuer.sign())).toBe(200);
});

it('a set without any key does not replace the last good one', async () => {
  await start({ jwksCooldownSeconds: 1 });
  expect(await statusOf(await issuer.sign())).toBe(200);
  issuer.odd.set('jwks', (response) => response.end('{"keys":[null]}'));
  const good = await issuer.sign();
  await issuer.rotate();
  await reachesStatus(503, () => issuer.sign());
  expect(await statusOf(good)).toBe(200);
});

it('without any keys yet a token is a 503 without Retry-After, never a 401', async () => {
  issuer.failWith = 0;
  await start();
  const answer = await gateway?.send('GET', '/v3/things', { token: await issuer.sign() });
  expect(answer?.status).toBe(503);
  expect(answer?.headers.get('Retry-After')).toBeNull();
  expect(answer?.headers.get('WWW-Authenticate')).toBeNull();
  expect(await answer?.json()).toMatchObject({ code: 'ServiceUnavailable' });
});

it('the metrics report identifications, cache hits, latency and the age of the keys', async () => {
  await start();
  const token = await issuer.sign();
  for (let count = 0; count < 3; count++) expect(await statusOf(token)).toBe(200);
  expect(await statusOf('x.y.z')).toBe(401);
  const metrics = (await gateway?.metrics()) ?? '';
  expect(metrics).toContain('weir_identifications_total{source="jwt",outcome="known",cached="false"} 1');
  expect(metrics).toContain('weir_identifications_total{source="jwt",outcome="known",cached="true"} 2');
  expect(metrics).toContain('weir_identifications_total{source="jwt",outcome="invalid",cached="false"} 1');
  expect(metrics).toMatch(
    /weir_identity_provider_duration_seconds_count\{provider="jwks",outcome="answered"\} 1/,
  );
  expect(metrics).toMatch(/weir_jwks_age_seconds [0-9.]+/);
  expect(metrics).not.toContain(token);
});
