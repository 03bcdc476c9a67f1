import { describe, expect, it, onTestFinished } from 'vitest';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

type Options = Parameters<typeof startGateway>[0];

async function start(options: Options): Promise<TestGateway> {
  const gateway = await startGateway({
    settings: { log: { level: 'info' }, operations: { list: [] } },
    ...options,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The limits that the next response names, by the name of their bucket. */
async function policyOf(
  gateway: TestGateway,
  token: string,
  account?: string,
): Promise<Record<string, number>> {
  const named = account === undefined ? {} : { account };
  const response = await gateway.send('GET', '/v3/things', { token, ...named });
  const items = (response.headers.get('RateLimit-Policy') ?? '').matchAll(/"([^"]+)";q=(\d+)/g);
  return Object.fromEntries([...items].map(([, name = '', limit]) => [name, Number(limit)]));
}

const FILE = {
  limits: {
    'account-minute': { per: 'account', points: 1_000, window: '1m' },
    'organization-month': { per: 'organization', points: 9_000, window: '30d' },
  },
  plans: {
    free: { 'account-read': 5, 'account-minute': 100 },
    pro: { 'account-read': 2_000, 'account-minute': 100_000, 'organization-month': 'none' },
  },
};

describe.each(STORES)('with the $kind store', ({ store }) => {
  it('by the limits file; an override of the Account wins over its plan', async () => {
    const gateway = await start({
      store: store(),
      limits: { ...FILE, accounts: { acct_1: { plan: 'pro', 'account-minute': 200_000 } } },
    });
    expect(await policyOf(gateway, 'service')).toEqual({
      'account-read': 2_000,
      'account-write': 20,
      'organization-read': 30,
      'organization-write': 30,
      'account-minute': 200_000,
    });
    expect(await policyOf(gateway, 'other')).toMatchObject({
      'account-read': 20,
      'account-minute': 1_000,
      'organization-month': 9_000,
    });
  });

  it('by the identities file, and by the Organization of the Account', async () => {
    const accounts = {
      acct_1: { organization: 'org_1', plan: 'free' },
      acct_2: { organization: 'org_1' },
      acct_3: { plan: 'gold' },
      acct_4: { organization: 'org_2', plan: 'free' },
    };
    const gateway = await start({
      store: store(),
      identities: { accounts },
      limits: { ...FILE, organizations: { org_1: { plan: 'pro' } } },
    });
    // The limits file wins over other sources.
    expect(await policyOf(gateway, 'service')).toMatchObject({ 'account-read': 2_000 });
    expect(await policyOf(gateway, 'organization', 'acct_2')).toMatchObject({ 'account-read': 2_000 });
    // A plan that the limits do not have means the defaults.
    expect(await policyOf(gateway, 'lonely')).toMatchObject({ 'account-read': 20 });
    await policyOf(gateway, 'lonely');
    const unknown = gateway.lines.filter((line) => line.includes('plan.unknown'));
    expect(unknown).toHaveLength(1);
    expect(unknown[0]).toContain('"plan":"gold"');
    expect(await gateway.metrics()).toContain('weir_unknown_plans_total 2');
    expect(gateway.lines.some((line) => line.includes('"plan":"pro"') && line.includes('acct_1'))).toBe(true);
  });
});
