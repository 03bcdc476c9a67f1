import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { type Claims, introspectionSettings, startIssuer, type TestIssuer } from '../fixtures/issuer.ts';

let issuer: TestIssuer;
let gateway: TestGateway;

beforeEach(async () => {
  issuer = await startIssuer();
});
afterEach(async () => {
  await gateway.close();
  await issuer.close();
});

const ACCOUNT = { organization: 'org_1' };
const PERSON = { active: true, sub: 'person_1', type: 'Person', account: 'acct_1' };
const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');

interface Kind {
  readonly provider: string;
  identity(): { readonly identity: Claims };
  /** Something to ask the provider about, with a usable answer. */
  allow(name: string): void;
  /** What the fixture calls the question. */
  question(name: string): string;
  send(name: string): Promise<Response>;
}

const KINDS: readonly Kind[] = [
  {
    provider: 'introspection',
    identity: () => introspectionSettings(issuer, { cacheSeconds: 0, staleIfErrorSeconds: 0 }),
    allow: (name) => issuer.tokens.set(name, PERSON),
    question: (name) => name,
    send: (name) => gateway.send('GET', '/v3/things', { token: name }),
  },
  {
    provider: 'api-keys',
    identity: () => ({
      identity: {
        kind: 'api-keys',
        file: 'identities.yaml',
        url: `${issuer.url}/keys/{digest}`,
        timeoutMs: 10_000,
      },
    }),
    allow: (name) => issuer.keyOwners.set(digestOf(keyOf(name)), { principal: 'person_1' }),
    question: (name) => digestOf(keyOf(name)),
    send: (name) => gateway.send('GET', '/v3/things', { token: keyOf(name) }),
  },
  {
    provider: 'directory',
    identity() {
      issuer.tokens.set('organization', { active: true, sub: 'svc_org', organization: 'org_1' });
      const url = `${issuer.url}/accounts/{account}`;
      return introspectionSettings(issuer, {
        directory: { kind: 'http', url, timeoutMs: 10_000, cacheSeconds: 0, staleIfErrorSeconds: 0 },
      });
    },
    allow: (name) => issuer.accounts.set(name, ACCOUNT),
    question: (name) => name,
    send: (name) => gateway.send('GET', '/v3/things', { token: 'organization', account: name }),
  },
];

function keyOf(name: string): string {
  return `wk_${name}_0123456789abcdef`;
}

const IDENTITIES = {
  tokens: {},
  accounts: { acct_1: {} },
  principals: { person_1: { type: 'Person', account: 'acct_1' } },
};

function answer(status: number, body = 'no', headers = {}): (response: ServerResponse) => void {
  return (response) => response.writeHead(status, headers).end(body);
}

/** Answers that say something about one question, and how the log names them. */
const UNUSABLE: readonly (readonly [string, (response: ServerResponse) => void])[] = [
  ['answered 400', answer(400)],
  ['answered 422', answer(422)],
  ['answered 204', (response) => response.writeHead(204).end()],
  ['answered 302', answer(302, '', { Location: '/login' })],
  ['the answer is not JSON', answer(200, '<html>')],
  ['the answer is not JSON', answer(200, '')],
  ['the answer (is not|has no)', answer(200, '[7]')],
  ['the answer (is not|has no)', answer(200, '{"active":"yes","principal":7,"organization":7}')],
  ['more than 1048576 bytes', answer(200, ' '.repeat(1_048_577))],
  ['malformed', answer(200, 'plain', { 'Content-Encoding': 'gzip' })],
  ['malformed', (response) => response.socket?.end('HTTP/1.1 200 OK\r\nA: \0\r\n\r\n')],
];

async function start(kind: Kind): Promise<void> {
  const settings = { ...kind.identity(), log: { level: 'info' } };
  gateway = await startGateway({ settings, limits: PLENTY, identities: IDENTITIES });
}

const named = (prefix: string, count = 12) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

async function statusesOf(kind: Kind, names: readonly string[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const name of names) {
    const response = await kind.send(name);
    statuses.push(response.status);
    if (response.status === 503) expect(await response.json()).toMatchObject({ code: 'ServiceUnavailable' });
  }
  return statuses;
}

const askedAbout = (kind: Kind, name: string) =>
  issuer.introspected.filter(({ token }) => token === kind.question(name)).length +
  (issuer.asked.get(`/keys/${kind.question(name)}`) ?? 0) +
  (issuer.asked.get(`/accounts/${name}`) ?? 0);

const logged = (message: string) => gateway.lines.filter((line) => line.includes(message));

/** More than the failures after which a provider is not called for a while. */
const BAD = 3;

describe.each(KINDS)('$provider', (kind) => {
  it('unusable answers fail only the lookups that they answer', async () => {
    await start(kind);
    for (const [row, [, send]] of UNUSABLE.entries()) {
      const bad = named(`bad-${row}`, BAD);
      for (const name of bad) issuer.odd.set(kind.question(name), send);
      const good = named(`good-${row}`, 2);
      for (const name of good) kind.allow(name);
      expect(await statusesOf(kind, bad)).toEqual(bad.map(() => 503));
      expect(await statusesOf(kind, good), UNUSABLE[row]?.[0]).toEqual(good.map(() => 200));
    }
    const count = UNUSABLE.length * BAD;
    const series = `weir_identity_provider_duration_seconds_count{provider="${kind.provider}",outcome=`;
    const metrics = await gateway.metrics();
    expect(metrics).toContain(`${series}"unusable"} ${count}`);
    expect(metrics).toContain(`${series}"failed"} 0`);
  });

  it('a question with an unusable answer is not asked at each request, and is asked again later', async () => {
    await start(kind);
    issuer.odd.set(kind.question('bad'), answer(422));
    await statusesOf(kind, Array(30).fill('bad'));
    expect(askedAbout(kind, 'bad')).toBeLessThan(15);
    issuer.odd.clear();
    kind.allow('bad');
    await vi.waitFor(async () => expect((await kind.send('bad')).status).toBe(200), { timeout: 60_000 });
  });

  it.each([403, 500, 502])(
    'one question that is always answered with %i does not fail others',
    async (status) => {
      await start(kind);
      issuer.odd.set(kind.question('bad'), answer(status));
      kind.allow('good');
      expect(await statusesOf(kind, Array(12).fill('bad'))).toEqual(Array(12).fill(503));
      expect((await kind.send('good')).status).toBe(200);
    },
  );

  it.each([
    [401, 'refuses the credentials of the gateway'],
    [403, 'refuses the credentials of the gateway'],
    [429, 'is unavailable'],
    [500, 'is unavailable'],
    [503, 'is unavailable'],
  ])('while all is answered with %i, calls become rare', async (status, message) => {
    await start(kind);
    const bad = named('bad', 40);
    for (const name of bad) issuer.odd.set(kind.question(name), answer(status));
    expect(await statusesOf(kind, bad)).toEqual(bad.map(() => 503));
    expect(bad.filter((name) => askedAbout(kind, name) > 0).length).toBeLessThan(20);
    expect(logged(`the identity provider ${message}`)).toEqual([
      expect.stringContaining(`"reason":"answered ${status}"`),
    ]);
  });
});

it('a known caller goes on while the answer about its token is unusable', async () => {
  gateway = await startGateway({
    settings: introspectionSettings(issuer, { cacheSeconds: 0 }),
    limits: PLENTY,
  });
  issuer.tokens.set('known', PERSON);
  const status = async () => (await gateway.send('GET', '/v3/things', { token: 'known' })).status;
  expect(await status()).toBe(200);
  issuer.odd.set('known', answer(400));
  for (let count = 0; count < 5; count++) expect(await status()).toBe(200);
});

it.each(UNUSABLE)('the log says once what was wrong, and never the token: %s', async (reason, send) => {
  gateway = await startGateway({
    settings: { ...introspectionSettings(issuer), log: { level: 'info' } },
    limits: PLENTY,
  });
  for (const token of named('wrong')) {
    issuer.odd.set(token, send);
    await gateway.send('GET', '/v3/things', { token });
  }
  const [line = '', ...others] = logged('the identity provider gave an unusable answer');
  expect(JSON.parse(line)).toMatchObject({ provider: 'introspection' });
  expect(JSON.parse(line).reason).toMatch(new RegExp(reason));
  expect(others).toEqual([]);
  expect(gateway.lines.join('')).not.toContain('wrong-');
});

it.each([
  ['principal', {}],
  ['issuedAt', { principal: 'person_1', issuedAt: 'yesterday' }],
  ['issuedAt', { principal: 'person_1', issuedAt: 1_700_000_000 }],
  ['account', { principal: 'person_1', account: 7 }],
])('the log names the member of the record of an API key that is wrong: %s', async (member, record) => {
  const [, keys = KINDS[0] as Kind] = KINDS;
  await start(keys);
  issuer.keyOwners.set(digestOf(keyOf('odd')), record);
  expect((await keys.send('odd')).status).toBe(503);
  expect(logged(`the answer has no valid \\"${member}\\"`)).toHaveLength(1);
});
