import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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

async function start(settings: object): Promise<TestGateway> {
  gateway = await startGateway({ settings: { ...settings, operations: { list: [] } }, limits: LIMITS });
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

const DEFAULT = 20;

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
    expect(await limitOf(started, 'wk_0123456789abcdef')).toBe(1_000);
    // A token of the file has no record.
    expect(await limitOf(started, 'service')).toBe(DEFAULT);
  } finally {
    await owners.close();
  }
});
