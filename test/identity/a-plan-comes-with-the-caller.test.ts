import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import {
  type Claims,
  introspectionSettings,
  jwtSettings,
  startIssuer,
  type TestIssuer,
} from '../fixtures/issuer.ts';
import { startUpstream } from '../fixtures/upstream.ts';

const LIMITS = {
  plans: { free: { 'account-read': 11 }, pro: { 'account-read': 1_000 }, gold: { 'account-read': 9_000 } },
  organizations: { org_9: { plan: 'gold' } },
};

const SERVICE: Claims = { sub: 'svc_1', account: 'acct_1', organization: 'org_1', actsFor: ['acct_2'] };

let issuer: TestIssuer;
let gateway: TestGateway | undefined;

beforeEach(async () => {
  issuer = await startIssuer();
});
afterEach(async () => {
  await gateway?.close();
  await issuer.close();
});

async function start(settings: object, limits: Claims = LIMITS): Promise<TestGateway> {
  gateway = await startGateway({ settings: { ...settings, operations: { list: [] } }, limits });
  return gateway;
}

/** The limit of account-read that the response names. */
async function limitOf(started: TestGateway, token: string, account?: string): Promise<number> {
  const response = await started.send('GET', '/any', {
    token,
    ...(account === undefined ? {} : { account }),
  });
  expect(response.status).toBe(200);
  return Number(/"account-read";q=(\d+)/.exec(response.headers.get('RateLimit-Policy') ?? '')?.[1]);
}

/** What `weir usage` shows, once it has this plan. */
async function untilShown(started: TestGateway, owner: string, plan: string | null) {
  const read = async () => (await (await fetch(`${started.adminUrl}/usage/${owner}`)).json()) as Usage;
  await expect.poll(async () => (await read()).plan, { message: owner }).toBe(plan);
  const { buckets } = await read();
  return Object.fromEntries(buckets.map(({ bucket, limit }) => [bucket, limit]));
}

const DEFAULT = 20;

const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');

describe.each([
  ['jwt', async (claims: Claims) => issuer.sign({ account: null, ...claims })],
  [
    'introspection',
    async (claims: Claims) => {
      const token = `t-${issuer.tokens.size}`;
      issuer.tokens.set(token, { active: true, ...claims });
      return token;
    },
  ],
])('by the claim of a token (%s)', (kind, tokenOf) => {
  const settingsOf = (identity: Claims = {}) =>
    kind === 'jwt'
      ? jwtSettings(issuer, identity)
      : introspectionSettings(issuer, { directory: { kind: 'claims' }, ...identity });

  it('for its own Account, and not for one that it acts for', async () => {
    const started = await start(settingsOf());
    expect(await limitOf(started, await tokenOf({ ...SERVICE, plan: 'pro' }))).toBe(1_000);
    expect(await limitOf(started, await tokenOf({ ...SERVICE, plan: 'pro' }), 'acct_2')).toBe(DEFAULT);
    expect(await limitOf(started, await tokenOf(SERVICE))).toBe(DEFAULT);
    const others = [{ account: 'acct_2', organization: 'org_1', plan: 'free' }];
    expect(await limitOf(started, await tokenOf({ ...SERVICE, actsFor: others }), 'acct_2')).toBe(11);
  });

  it('for every Account of its Organization', async () => {
    const started = await start(settingsOf());
    const token = await tokenOf({
      sub: 'svc_org',
      type: 'ServiceAccount',
      organization: 'org_1',
      actsFor: ['acct_1'],
      plan: 'free',
    });
    expect(await limitOf(started, token, 'acct_1')).toBe(11);
  });

  it('under another name; what is no name, or unknown, means the defaults', async () => {
    const started = await start(settingsOf({ claims: { plan: 'tier' } }));
    expect(await limitOf(started, await tokenOf({ ...SERVICE, tier: 'pro', plan: 'free' }))).toBe(1_000);
    for (const tier of ['bronze', 5, null, { pro: true }, 'a b', '']) {
      expect(await limitOf(started, await tokenOf({ ...SERVICE, tier })), String(tier)).toBe(DEFAULT);
    }
  });

  it('unless the limits file assigns another', async () => {
    const started = await start(settingsOf());
    expect(await limitOf(started, await tokenOf({ ...SERVICE, organization: 'org_9', plan: 'free' }))).toBe(
      9_000,
    );
  });
});

it('by the answer of the directory', async () => {
  issuer.accounts.set('acct_1', { organization: 'org_1', plan: 'pro' });
  issuer.accounts.set('acct_2', { organization: 'org_1', plan: 7 });
  issuer.tokens.set('t', { active: true, ...SERVICE });
  const directory = { kind: 'http', url: `${issuer.url}/accounts/{account}` };
  const started = await start(introspectionSettings(issuer, { directory }));
  expect(await limitOf(started, 't')).toBe(1_000);
  expect(await limitOf(started, 't', 'acct_2')).toBe(DEFAULT);
});

it('by the record of an API key', async () => {
  const owners = await startUpstream((_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ principal: 'svc_1', plan: 'pro' }));
  });
  const identity = { kind: 'api-keys', file: 'identities.yaml', url: `${owners.url}/{digest}` };
  try {
    const started = await start({ identity });
    expect(await untilShown(started, 'accounts/acct_1', null)).toMatchObject({ 'account-read': DEFAULT });
    expect(await limitOf(started, 'wk_0123456789abcdef')).toBe(1_000);
    expect(await untilShown(started, 'accounts/acct_1', 'pro')).toMatchObject({ 'account-read': 1_000 });
    // A token of the file has no record.
    expect(await limitOf(started, 'service')).toBe(DEFAULT);
  } finally {
    await owners.close();
  }
});

it("by the record of an API key, but not for the key's principal if it belongs to another Account", async () => {
  const owners = await startUpstream((request, response) => {
    const account = request.url === `/${digestOf('wk_0123456789abcdef')}` ? 'acct_2' : undefined;
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ principal: 'person_1', account, plan: account && 'pro' }));
  });
  onTestFinished(() => owners.close());
  const identity = { kind: 'api-keys', file: 'identities.yaml', url: `${owners.url}/{digest}` };
  const limits = { key: { per: 'principal', points: 50, window: '1m' } };
  const plans = {
    pro: { 'account-read': 1_000, key: 500 },
    gold: { 'account-read': 9_000, key: 900 },
  };
  const limitsOf = async (assigned: object) => {
    await gateway?.close();
    const started = await start({ identity }, { limits, plans, ...assigned });
    const answers = [
      await started.send('GET', '/any', { token: 'wk_0123456789abcdef' }),
      await started.send('GET', '/any', { token: 'wk_fedcba9876543210', account: 'acct_2' }),
    ];
    return answers.map((answer) => {
      const policy = answer.headers.get('RateLimit-Policy') ?? '';
      return [...policy.matchAll(/"(account-read|key)";q=(\d+)/g)].map(([, , limit]) => Number(limit));
    });
  };
  // Of the key that belongs to acct_2, and of the one that names it.
  expect(await limitsOf({})).toEqual([
    [1_000, 50],
    [DEFAULT, 50],
  ]);
  expect(await limitsOf({ accounts: { acct_1: { plan: 'gold' } } })).toEqual([
    [1_000, 900],
    [DEFAULT, 900],
  ]);
});

describe('and usage shows it', () => {
  it('rather than the plan of the directory, as charging does', async () => {
    issuer.accounts.set('acct_1', { organization: 'org_1', plan: 'free' });
    const directory = { kind: 'http', url: `${issuer.url}/accounts/{account}` };
    const started = await start(introspectionSettings(issuer, { directory }));
    const foreign = { sub: 'svc_2', account: 'acct_2', organization: 'org_1', actsFor: ['acct_1'] };
    issuer.accounts.set('acct_2', { organization: 'org_1' });
    issuer.tokens.set('foreign', { active: true, ...foreign });
    issuer.tokens.set('own', { active: true, ...SERVICE, plan: 'pro' });
    expect(await limitOf(started, 'foreign', 'acct_1')).toBe(11);
    expect(await untilShown(started, 'accounts/acct_1', 'free')).toMatchObject({ 'account-read': 11 });
    expect(await limitOf(started, 'own')).toBe(1_000);
    expect(await limitOf(started, 'foreign', 'acct_1')).toBe(11);
    expect(await untilShown(started, 'accounts/acct_1', 'pro')).toMatchObject({ 'account-read': 1_000 });
  });

  it('once a token names another one, with an Organization from the token or from the question', async () => {
    const started = await start(jwtSettings(issuer, {}));
    const send = async (plan: string) => {
      await limitOf(started, await issuer.sign({ account: null, ...SERVICE, plan }));
    };
    await send('pro');
    await untilShown(started, 'accounts/acct_1', 'pro');
    await send('free');
    expect(await untilShown(started, 'accounts/acct_1', 'free')).toMatchObject({ 'account-read': 11 });
    const asked = await untilShown(started, 'accounts/acct_1?organization=org_1', 'free');
    expect(asked).toMatchObject({ 'account-read': 11 });
  });

  it('for the limits of an Organization that has no plan', async () => {
    const started = await start(jwtSettings(issuer, {}), {
      plans: { pro: { 'organization-read': 700 }, gold: { 'organization-read': 900 } },
      accounts: { acct_1: { plan: 'gold' } },
    });
    await started.send('GET', '/any', { token: await issuer.sign({ account: null, ...SERVICE }) });
    for (const owner of ['accounts/acct_1', 'organizations/org_1'])
      expect(await untilShown(started, owner, 'gold')).toMatchObject({ 'organization-read': 900 });
    const other = { sub: 'svc_3', account: 'acct_3', organization: 'org_3', plan: 'pro' };
    await started.send('GET', '/any', { token: await issuer.sign(other) });
    for (const owner of ['accounts/acct_3', 'organizations/org_3'])
      expect(await untilShown(started, owner, 'pro')).toMatchObject({ 'organization-read': 700 });
  });
});
