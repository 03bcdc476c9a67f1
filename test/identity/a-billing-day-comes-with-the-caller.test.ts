import { createHash } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import {
  type Claims,
  introspectionSettings,
  jwtSettings,
  startIssuer,
  type TestIssuer,
} from '../fixtures/issuer.ts';
import { startUpstream } from '../fixtures/upstream.ts';

const LIMITS = { limits: { quota: { per: 'account', points: 1_000, period: 'month', startsOn: 9 } } };

const SERVICE: Claims = { sub: 'svc_1', account: 'acct_1', organization: 'org_1', actsFor: ['acct_2'] };

/** What is no day of a month. */
const WRONG: readonly unknown[] = [0, 32, 1.5, -3, '', '007', 'monday', null, true, [5], { day: 5 }];

async function issue(): Promise<TestIssuer> {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  return issuer;
}

async function start(settings: Claims, limits: Claims = LIMITS): Promise<TestGateway> {
  const all = { ...settings, operations: { list: [] }, usage: { path: '/usage' } };
  const gateway = await startGateway({ settings: all, limits });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The month that the caller's own usage shows. */
async function monthOf(
  gateway: TestGateway,
  token: string,
  account?: string,
  limit = 'quota',
): Promise<unknown> {
  const response = await gateway.send('GET', '/usage', { token, ...(account && { account }) });
  expect(response.status).toBe(200);
  const { buckets } = (await response.json()) as { buckets: { bucket: string; period?: object }[] };
  return buckets.find(({ bucket }) => bucket === limit)?.period;
}

function monthFrom(startsOn: number): object {
  const { startMs, endMs } = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn }).at(Date.now());
  const [start, end] = [startMs, endMs].map((ms) => new Date(ms).toISOString());
  return { unit: 'month', startsOn, start, end };
}

it('by the claim of a token, for its own Account and not for one that it acts for', async () => {
  const issuer = await issue();
  const gateway = await start(jwtSettings(issuer));
  const token = await issuer.sign({ ...SERVICE, periodStartsOn: 17 });
  expect(await monthOf(gateway, token)).toMatchObject(monthFrom(17));
  expect(await monthOf(gateway, token, 'acct_2')).toMatchObject(monthFrom(9));
  for (const periodStartsOn of WRONG) {
    const wrong = await issuer.sign({ ...SERVICE, periodStartsOn });
    expect(await monthOf(gateway, wrong), JSON.stringify(periodStartsOn)).toMatchObject(monthFrom(9));
  }
});

it('by another claim, where the settings name one', async () => {
  const issuer = await issue();
  const gateway = await start(jwtSettings(issuer, { claims: { periodStartsOn: 'billing_day' } }));
  const token = await issuer.sign({ ...SERVICE, billing_day: '21', periodStartsOn: 17 });
  expect(await monthOf(gateway, token)).toMatchObject(monthFrom(21));
});

it('by the answer of the directory, unless the limits file has another', async () => {
  const issuer = await issue();
  issuer.accounts.set('acct_1', { organization: 'org_1', periodStartsOn: 31 });
  issuer.accounts.set('acct_2', { organization: 'org_1', periodStartsOn: 31 });
  issuer.tokens.set('t', { active: true, ...SERVICE });
  const directory = { kind: 'http', url: `${issuer.url}/accounts/{account}` };
  const limits = { ...LIMITS, accounts: { acct_2: { periodStartsOn: 2 } } };
  const gateway = await start(introspectionSettings(issuer, { directory }), limits);
  expect(await monthOf(gateway, 't')).toMatchObject(monthFrom(31));
  expect(await monthOf(gateway, 't', 'acct_2')).toMatchObject(monthFrom(2));
});

it('by the record of an API key', async () => {
  const owners = await startUpstream((_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ principal: 'svc_1', periodStartsOn: 5 }));
  });
  onTestFinished(() => owners.close());
  const identity = { kind: 'api-keys', file: 'identities.yaml', url: `${owners.url}/{digest}` };
  const gateway = await start({ identity });
  expect(await monthOf(gateway, 'wk_0123456789abcdef')).toMatchObject(monthFrom(5));
});

it('the months of a principal do not begin on the day of a key that belongs to another Account', async () => {
  const keys = [
    { token: 'wk_0123456789abcdef', account: 'acct_1', periodStartsOn: 5 },
    { token: 'wk_fedcba9876543210', account: 'acct_2', periodStartsOn: 21 },
  ];
  const digestOf = (token: string) => createHash('sha256').update(token).digest('hex');
  const owners = await startUpstream((request, response) => {
    const { token: _, ...owner } = keys.find(({ token }) => request.url === `/${digestOf(token)}`) ?? {};
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ principal: 'svc_9', ...owner }));
  });
  onTestFinished(() => owners.close());
  const gateway = await startGateway({
    settings: {
      identity: { kind: 'api-keys', file: 'identities.yaml', url: `${owners.url}/{digest}` },
      operations: { list: [] },
      usage: { path: '/usage' },
    },
    limits: {
      limits: { ...LIMITS.limits, own: { per: 'service', points: 1_000, period: 'month', startsOn: 9 } },
    },
    identities: {
      tokens: {},
      principals: { svc_9: { type: 'ServiceAccount', organization: 'org_1' } },
      accounts: { acct_1: { organization: 'org_1' }, acct_2: { organization: 'org_1' } },
    },
  });
  onTestFinished(() => gateway.close());
  for (const { token, periodStartsOn } of keys) {
    expect(await monthOf(gateway, token)).toMatchObject(monthFrom(periodStartsOn));
    expect(await monthOf(gateway, token, undefined, 'own')).toMatchObject(monthFrom(9));
  }
});
