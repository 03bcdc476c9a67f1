import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { FindResult } from '../../src/admin/find/finder.ts';
import { find } from '../../src/commands/find.ts';
import type { UsageOptions } from '../../src/commands/past-usage.ts';
import { usage } from '../../src/commands/usage.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { introspectionSettings, startIssuer } from '../fixtures/issuer.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

const SOON = { timeout: 20_000, interval: 50 };

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const found = async (gateway: TestGateway, q: string) =>
  (await (await fetch(`${gateway.adminUrl}/find?q=${encodeURIComponent(q)}`)).json()) as FindResult;

const put = (gateway: TestGateway, path: string, body: object) =>
  fetch(`${gateway.adminUrl}${path}`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ why: 'test', by: 'me', ...body }),
  });

describe('what the files name', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    const limits = {
      limits: {
        exports: { per: 'account', concurrent: 4 },
        month: { per: 'organization', requests: 'none', period: 'month' },
      },
      plans: { pro: { 'account-read': 500, exports: 9 } },
    };
    gateway = await startGateway({ limits });
  });
  afterAll(() => gateway.close());

  it.each([
    ['acct_1', [['account', 'acct_1']]],
    ['org_1', [['organization', 'org_1']]],
    ['svc_1', [['principal', 'svc_1']]],
    ['account-read', [['limit', 'account-read']]],
    ['10.1.2.3/8', [['address', '10.0.0.0/8']]],
    ['GET /v3/reports', [['operation', 'reportRead']]],
    ['nobody', []],
  ])('%s is found as %j', async (q, expected) => {
    const { found: all } = await found(gateway, q);
    expect(all.map(({ kind, id }) => [kind, id])).toEqual(expected);
  });

  it.each([
    ['svc_1', 'ServiceAccount of account acct_1'],
    ['account-read', '20 points per minute, per account'],
    ['month', 'no limit on requests per month, per organization'],
    ['exports', '4 concurrent requests, per account'],
    ['pro', 'sets account-read, exports'],
  ])('%s is found with what it is: %s', async (q, text) => {
    expect((await found(gateway, q)).found).toMatchObject([{ text }]);
  });
});

it('a request that another replica refused is found', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store })] as const;
  await put(gateways[0], '/blocks/accounts/acct_1', {});
  await gateways[0].send('GET', '/v3/things', { headers: { 'X-Request-Id': 'refused-1' } });
  for (const gateway of gateways) {
    await expect
      .poll(async () => (await found(gateway, 'refused-1')).found, SOON)
      .toMatchObject([
        { kind: 'request', id: 'refused-1', text: expect.stringContaining('is blocked until') },
      ]);
  }
});

it('a request of the last minutes is found at every replica, whatever its status', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store })] as const;
  const send = (id: string, headers: Record<string, string> = {}) =>
    gateways[0].send('GET', '/v3/things', { headers: { 'X-Request-Id': id, ...headers } });
  await send('served-1');
  await send('stranger-1', { Authorization: 'Bearer nobody' });
  // A client tries again with the same id.
  await gateways[1].send('GET', '/v3/reports', { headers: { 'X-Request-Id': 'served-1' } });
  const textsOf = async (gateway: TestGateway, id: string) =>
    (await found(gateway, id)).found.map(({ kind, text }) => `${kind} ${text.replace(/^\S+Z/, 'TIME')}`);
  for (const gateway of gateways) {
    // A replica that has just started is not known to the others yet.
    await expect
      .poll(() => textsOf(gateway, 'served-1'), SOON)
      .toEqual(['request TIME reportRead: 200, for acct_1', 'request TIME listThings: 200, for acct_1']);
    expect(await textsOf(gateway, 'stranger-1')).toEqual(['request TIME listThings: 401, unknown-token']);
    expect(await textsOf(gateway, 'served-2')).toEqual([]);
  }
});

it('the nearest ids are named, also by weir find, whose exit code is 1', async () => {
  const gateway = await start();
  expect((await found(gateway, 'acct_11')).nearest).toContainEqual({ kind: 'account', id: 'acct_1' });
  const { failure } = await runHere(() => find('acct_11', { url: gateway.adminUrl }));
  expect(failure).toMatch(/^acct_11 is unknown\.\n.*Similar: account acct_1/s);
  const { stdout } = await runHere(() => find('org_1', { url: gateway.adminUrl }));
  expect(stdout).toMatch(/^organization\s+org_1/);
  expect((await fetch(`${gateway.adminUrl}/find?q=`)).status).toBe(400);
});

it('weir usage shows the limits of any principal that has the id', async () => {
  const gateway = await start({
    limits: {
      limits: {
        each: { per: 'principal', requests: 9, window: '1m' },
        robots: { per: 'service', requests: 8, window: '1m' },
      },
    },
  });
  const options = { url: gateway.adminUrl };
  await gateway.send('GET', '/v3/things');
  expect((await runHere(() => usage('svc_1', options))).stdout).toMatch(
    /^service svc_1 of organization org_1\n.*\neach +9 requests in 1 min +1 +8 .*\nrobots +8 requests in 1 min +1 +7 /s,
  );
  expect((await runHere(() => usage('svc_org', options))).stdout).toMatch(
    /^service svc_org of organization org_1\n/,
  );
  expect((await runHere(() => usage('person_1', options))).stdout).toMatch(/^person person_1 .*\neach +9 /s);
  const plain = await start();
  expect((await runHere(() => usage('svc_1', { url: plain.adminUrl }))).stdout).toMatch(
    /^service svc_1 .*\n\nNo limit counts this Service account alone\. .*\n\nAs of /,
  );
  expect((await runHere(() => usage('nobody', options))).failure).toContain('There is no account nobody.');
});

it.each([
  ['/blocks/accounts/org_1', {}],
  ['/limits/live/accounts/org_1', { 'account-read': 10 }],
])('PUT %s is refused for what nobody has, unless it is forced', async (path, body) => {
  const gateway = await start();
  const refused = await put(gateway, path, body);
  expect(refused.status).toBe(404);
  expect(await refused.json()).toMatchObject({
    code: 'unknown',
    error: expect.stringMatching(/^There is no account org_1\. org_1 is an organization\./),
    scopes: ['organization'],
  });
  expect((await put(gateway, path, { ...body, force: true })).status).toBe(200);
  const unknown = await fetch(`${gateway.adminUrl}/usage/organizations/acct_1`);
  expect(unknown.status).toBe(404);
  expect(await unknown.json()).toMatchObject({ code: 'unknown', scopes: ['account'] });
});

it('where nobody lists the callers, an id that was seen lately is known, at every replica', async () => {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  issuer.tokens.set('good', { active: true, sub: 'svc_1', account: 'acct_1', organization: 'org_1' });
  const settings = { ...introspectionSettings(issuer), operations: { list: [] } };
  const store = uniqueRedisStore();
  const gateways = [await start({ store, settings }), await start({ store, settings })] as const;
  const unseen = await put(gateways[1], '/blocks/accounts/acct_1', {});
  expect(unseen.status).toBe(404);
  expect(((await unseen.json()) as { error: string }).error).toContain('cannot list every account');
  const sent = await gateways[0].send('GET', '/any', { token: 'good' });
  expect(sent.status).toBe(200);
  await expect
    .poll(async () => (await put(gateways[1], '/blocks/accounts/acct_1', {})).status, SOON)
    .toBe(200);
});

it('where nobody lists the callers, weir usage calls an id unknown until a request of it was seen', async () => {
  const issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  issuer.tokens.set('good', { active: true, sub: 'svc_1', account: 'acct_1', organization: 'org_1' });
  const settings = { ...introspectionSettings(issuer), operations: { list: [] } };
  const gateway = await start({ settings });
  const organization = { url: gateway.adminUrl, scope: 'organization' };
  const linesOf = async (id: string, options: UsageOptions) =>
    (await runHere(() => usage(id, options))).stdout.split('\n');
  expect((await linesOf('org_1', organization)).slice(0, 2)).toEqual([
    'organization org_1',
    'This organization is unknown: no request of it was seen in the last ten minutes, and this gateway cannot list every organization.',
  ]);
  expect((await linesOf('acct_1', { url: gateway.adminUrl, organization: 'org_1' }))[1]).toMatch(
    /^This account is unknown: no request of it was seen in the last ten minutes, /,
  );
  // Replicas do not share which principals they have seen.
  const person = { url: gateway.adminUrl, scope: 'person', account: 'acct_1', organization: 'org_1' };
  expect((await linesOf('person_1', person))[1]).toMatch(
    /^This person is unknown: no request of it was seen at this replica in the last ten minutes, /,
  );
  await gateway.send('GET', '/any', { token: 'good' });
  await expect.poll(async () => (await linesOf('org_1', organization))[1], SOON).toBe('');
});
