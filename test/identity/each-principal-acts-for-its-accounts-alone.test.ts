import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import {
  type Claims,
  introspectionSettings,
  jwtSettings,
  startIssuer,
  type TestIssuer,
} from '../fixtures/issuer.ts';

/** Who acts for which Account: without a target, with its own, an allowed, a foreign and an unknown one. */
interface Row {
  readonly token: string;
  readonly principal: string;
  /** What a token of an issuer says of it. */
  readonly claims: Claims;
  readonly none: string | 403;
  readonly allowed: readonly string[];
  readonly foreign: readonly string[];
}

const PERSON: Claims = {
  sub: 'person_1',
  type: 'Person',
  account: 'acct_1',
  organization: 'org_1',
  actsFor: ['acct_2', { account: 'acct_5', organization: 'org_2' }],
};
const SERVICE: Claims = {
  sub: 'svc_1',
  type: 'ServiceAccount',
  account: 'acct_1',
  organization: 'org_1',
  actsFor: [],
};
const ORGANIZATION: Claims = {
  sub: 'svc_org',
  type: 'ServiceAccount',
  organization: 'org_1',
  actsFor: ['acct_1', 'acct_2', { account: 'acct_4', organization: 'org_2' }],
};

const person = { claims: PERSON, none: 'acct_1', allowed: ['acct_1', 'acct_2', 'acct_5'] };
const service = { claims: SERVICE, none: 'acct_1', allowed: ['acct_1'] };
const organization = { claims: ORGANIZATION, none: 403 as const, allowed: ['acct_1', 'acct_2'] };

const ROWS: readonly Row[] = [
  { token: 'person', principal: 'a Person', ...person, foreign: ['acct_3', 'acct_4'] },
  { token: 'person-key', principal: "a Person's API key", ...person, foreign: ['acct_3', 'acct_4'] },
  {
    token: 'service',
    principal: 'a ServiceAccount of an Account',
    ...service,
    foreign: ['acct_2', 'acct_4'],
  },
  { token: 'service-key', principal: 'its API key', ...service, foreign: ['acct_2', 'acct_4'] },
  {
    token: 'organization',
    principal: 'a ServiceAccount of an Organization',
    ...organization,
    foreign: ['acct_3', 'acct_4'],
  },
  { token: 'organization-key', principal: 'its API key', ...organization, foreign: ['acct_3', 'acct_4'] },
];

const UNKNOWN = [
  'acct_9',
  'ACCT_1',
  'acct_1,acct_1',
  'acct_1 x',
  'org_1',
  '..',
  'acct_1%00',
  '{acct_1}',
  'a'.repeat(200),
];

const IDENTITIES = {
  tokens: {
    person: 'person_1',
    'person-key': 'person_1',
    service: 'svc_1',
    'service-key': 'svc_1',
    organization: 'svc_org',
    'organization-key': 'svc_org',
    stranger: 'person_3',
  },
  principals: {
    person_1: { type: 'Person', account: 'acct_1', actsFor: ['acct_2', 'acct_5'] },
    svc_1: { type: 'ServiceAccount', account: 'acct_1' },
    svc_org: { type: 'ServiceAccount', organization: 'org_1' },
    person_3: { type: 'Person', account: 'acct_3' },
  },
  accounts: {
    acct_1: { organization: 'org_1' },
    acct_2: { organization: 'org_1' },
    acct_3: {},
    acct_4: { organization: 'org_2' },
    acct_5: { organization: 'org_2' },
  },
};

const ACCOUNTS = Object.entries(IDENTITIES.accounts);

const SETUPS: readonly { name: string; identity(issuer: TestIssuer): Claims }[] = [
  { name: 'static', identity: () => ({ identity: { kind: 'static', file: 'identities.yaml' } }) },
  { name: 'jwt, Accounts from claims', identity: (issuer) => jwtSettings(issuer) },
  {
    name: 'jwt, Accounts from a file',
    identity: (issuer) => jwtSettings(issuer, { directory: { kind: 'file', file: 'identities.yaml' } }),
  },
  {
    name: 'introspection, Accounts over HTTP',
    identity: (issuer) =>
      introspectionSettings(issuer, { directory: { kind: 'http', url: `${issuer.url}/accounts/{account}` } }),
  },
];

describe.each(SETUPS)('$name', ({ name, identity }) => {
  let issuer: TestIssuer;
  let gateway: TestGateway;
  const signed = new Map<string, string>();

  beforeAll(async () => {
    issuer = await startIssuer();
    for (const [id, account] of ACCOUNTS) issuer.accounts.set(id, account);
    for (const { token, claims } of ROWS) {
      issuer.tokens.set(token, { active: true, ...claims });
      signed.set(token, name.startsWith('jwt') ? await issuer.sign({ account: null, ...claims }) : token);
    }
    gateway = await startGateway({ settings: identity(issuer), limits: PLENTY, identities: IDENTITIES });
  });
  afterAll(() => Promise.all([gateway.close(), issuer.close()]));

  const send = (token: string, account?: string) =>
    gateway.send('GET', '/v3/things', {
      token: signed.get(token) ?? token,
      ...(account === undefined ? {} : { account }),
    });

  it.each(ROWS)('$principal ($token)', async ({ token, none, allowed, foreign }) => {
    const withoutTarget = await send(token);
    expect(withoutTarget.status).toBe(none === 403 ? 403 : 200);
    if (none !== 403) expect(gateway.upstream.seen.at(-1)?.headers['x-account-id']).toBe(none);

    for (const account of allowed) {
      const answer = await send(token, account);
      expect(answer.status, account).toBe(200);
      const { headers } = gateway.upstream.seen.at(-1) ?? {};
      expect(headers?.['x-account-id']).toBe(account);
      expect(headers?.['x-organization-id']).toBe(organizationOf(account));
      const isLimited = answer.headers.get('RateLimit-Policy')?.includes('organization-read');
      expect(isLimited).toBe(organizationOf(account) !== undefined);
    }

    const before = gateway.upstream.seen.length;
    const bodies = new Set<string>();
    for (const account of [...foreign, ...UNKNOWN]) {
      const answer = await send(token, account);
      expect(answer.status, account).toBe(403);
      expect(answer.headers.get('RateLimit')).toBeNull();
      expect(answer.headers.get('RateLimit-Policy')).toBeNull();
      const { requestId, ...body } = (await answer.json()) as Record<string, unknown>;
      expect(requestId).toBe(answer.headers.get('X-Request-Id'));
      bodies.add(JSON.stringify(body));
    }
    expect([...bodies], 'foreign and unknown Accounts cannot be told apart').toHaveLength(1);
    expect(gateway.upstream.seen).toHaveLength(before);
  });
});

describe('an API key', () => {
  let issuer: TestIssuer;
  let gateway: TestGateway;

  beforeAll(async () => {
    issuer = await startIssuer();
    const identity = { kind: 'api-keys', file: 'identities.yaml', url: `${issuer.url}/keys/{digest}` };
    gateway = await startGateway({ settings: { identity }, limits: PLENTY, identities: IDENTITIES });
  });
  afterAll(() => Promise.all([gateway.close(), issuer.close()]));

  let keys = 0;
  const keyOf = (owner: object) => {
    const token = `wk_0123456789abcdef${keys++}`;
    issuer.keyOwners.set(createHash('sha256').update(token).digest('hex'), owner);
    return token;
  };
  const statusOf = async (owner: object) =>
    (await gateway.send('GET', '/v3/things', { token: keyOf(owner) })).status;

  it.each([
    ['person_1', ['acct_1', 'acct_2', 'acct_5'], ['acct_3', 'acct_4', 'acct_9']],
    ['svc_1', ['acct_1'], ['acct_2', 'acct_4', 'acct_9']],
    ['svc_org', ['acct_1', 'acct_2'], ['acct_3', 'acct_4', 'acct_9', '']],
  ])('of %s belongs to an Account that it may act for', async (principal, allowed, foreign) => {
    for (const account of allowed) expect(await statusOf({ principal, account }), account).toBe(200);
    for (const account of foreign) expect(await statusOf({ principal, account }), account).toBe(401);
    expect(gateway.upstream.seen.map(({ headers }) => headers['x-account-id'])).toEqual(allowed);
    gateway.upstream.seen.length = 0;
  });

  it('of a Person spends from the one bucket of the Person, whatever Account it belongs to', async () => {
    const accounts = ['acct_1', 'acct_2', 'acct_5', 'acct_5'];
    const tokens = [...accounts.map((account) => keyOf({ principal: 'person_1', account })), 'person'];
    const remaining: unknown[] = [];
    for (const token of tokens) {
      const answer = await gateway.send('GET', '/v3/mfa-factors', { token });
      expect(answer.status).toBe(200);
      remaining.push(remainingOf(answer)?.['account-read']);
    }
    expect(remaining).toEqual([999_999, 999_998, 999_997, 999_996, 999_995]);
    expect(gateway.upstream.seen.map(({ headers }) => headers['x-account-id'])).toEqual([
      ...accounts,
      'acct_1',
    ]);
    gateway.upstream.seen.length = 0;
  });

  it('has no Account and no date of issue where the endpoint answers null', async () => {
    expect(await statusOf({ principal: 'person_1', account: null, issuedAt: null, plan: null })).toBe(200);
    expect(gateway.upstream.seen.at(-1)?.headers['x-account-id']).toBe('acct_1');
  });
});

function organizationOf(account: string): string | undefined {
  return new Map<string, { organization?: string }>(ACCOUNTS).get(account)?.organization;
}
