import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PLENTY } from '../fixtures/configuration.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { type Claims, introspectionSettings, startIssuer, type TestIssuer } from '../fixtures/issuer.ts';

let issuer: TestIssuer;
let gateway: TestGateway;

beforeEach(async () => {
  issuer = await startIssuer();
  issuer.tokens.set('organization', { active: true, sub: 'svc_org', organization: 'org_1' });
  issuer.tokens.set('person', {
    active: true,
    sub: 'person_1',
    type: 'Person',
    account: 'acct_1',
    actsFor: ['acct_2'],
  });
});
afterEach(async () => {
  await gateway.close();
  await issuer.close();
});

async function start(directory: Claims = {}): Promise<void> {
  const http = { kind: 'http', url: `${issuer.url}/accounts/{account}`, ...directory };
  gateway = await startGateway({
    settings: introspectionSettings(issuer, { directory: http }),
    limits: PLENTY,
  });
}

const send = (account: string, token = 'organization') =>
  gateway.send('GET', '/v3/things', { token, account });

it('an Account is asked for once, a missing one as well', async () => {
  issuer.accounts.set('acct_1', { organization: 'org_1' });
  await start();
  for (let count = 0; count < 5; count++) {
    expect((await send('acct_1')).status).toBe(200);
    expect((await send('acct_9')).status).toBe(403);
  }
  expect(issuer.asked.get('/accounts/acct_1')).toBe(1);
  expect(issuer.asked.get('/accounts/acct_9')).toBe(1);
});

it('an Account whose Organization has no limit for it is charged alone', async () => {
  issuer.accounts.set('acct_1', { organization: 'org_1', organizationLimit: false });
  await start();
  const answer = await send('acct_1');
  expect(Object.keys(remainingOf(answer) ?? {})).toEqual(['account-read']);
  expect(answer.headers.get('RateLimit-Policy')).not.toContain('organization');
  expect(gateway.upstream.seen.at(-1)?.headers['x-organization-id']).toBe('org_1');
});

it('while it is down known Accounts go on, and others get a 503', async () => {
  issuer.accounts.set('acct_1', { organization: 'org_1' });
  issuer.accounts.set('acct_2', { organization: 'org_1' });
  await start({ cacheSeconds: 0 });
  expect((await send('acct_1')).status).toBe(200);
  expect((await send('acct_1', 'person')).status).toBe(200);
  issuer.failWith = 500;
  for (let count = 0; count < 5; count++) {
    expect((await send('acct_1')).status).toBe(200);
    expect((await send('acct_2', 'person')).status).toBe(503);
  }
  issuer.failWith = undefined;
  await vi.waitFor(async () => expect((await send('acct_2', 'person')).status).toBe(200), {
    timeout: 60_000,
    interval: 50,
  });
});

it('an answer that is not an Account is an error', async () => {
  await start({ cacheSeconds: 0, staleIfErrorSeconds: 0 });
  for (const body of [
    { organization: 7 },
    { organization: 'org 1' },
    [],
    { organizationLimit: 'no' },
    'acct_1',
  ]) {
    issuer.accounts.set('acct_1', { organization: 'org_1' });
    await vi.waitFor(async () => expect((await send('acct_1', 'person')).status).toBe(200), {
      timeout: 60_000,
    });
    issuer.accounts.set('acct_1', body);
    expect((await send('acct_1', 'person')).status, JSON.stringify(body)).toBe(503);
  }
});

it('it never gets an id that could be a different path', async () => {
  await start();
  for (const account of ['..', '.', 'a b']) expect((await send(account)).status).toBe(403);
  expect((await send('../accounts/acct_1?x#y')).status).toBe(403);
  const paths = [...issuer.asked.keys()].filter((path) => path.startsWith('/accounts'));
  expect(paths).toEqual(['/accounts/..%2Faccounts%2Facct_1%3Fx%23y']);
});
