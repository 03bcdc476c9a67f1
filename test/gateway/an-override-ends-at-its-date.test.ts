import { afterEach, expect, it, vi } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';

let gateway: TestGateway;
afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

const policyOf = async (token: string) =>
  (await gateway.send('GET', '/v3/things', { token })).headers.get('RateLimit-Policy');

it('at that moment, without a restart or a reload', async () => {
  const until = '2031-05-02';
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2031-05-02T23:59:59Z') });
  gateway = await startGateway({
    limits: {
      accounts: { acct_3: { 'account-read': 5000, until } },
      organizations: { org_1: { 'organization-read': 'none', 'organization-write': 700, until } },
    },
  });
  expect(await policyOf('lonely')).toContain('"account-read";q=5000;');
  expect(await policyOf('service')).toBe(
    '"account-read";q=20;w=60, "account-write";q=20;w=60, "organization-write";q=700;w=60',
  );
  vi.setSystemTime(Date.parse('2031-05-03T00:00:00Z'));
  expect(await policyOf('lonely')).toContain('"account-read";q=20;');
  expect(await policyOf('service')).toContain(
    '"organization-read";q=30;w=60, "organization-write";q=30;w=60',
  );
});
