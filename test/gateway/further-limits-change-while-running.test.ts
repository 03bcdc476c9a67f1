import { expect, it, onTestFinished, vi } from 'vitest';
import { listLimits, setLimit, unsetLimit } from '../../src/commands/limit/limit.ts';
import { type ConfigMap, mountConfigMap } from '../fixtures/config-map.ts';
import { PLENTY, WINDOW_SECONDS } from '../fixtures/configuration.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

/** Long enough for a machine that has much else to do. */
const WITHIN = { timeout: 60_000, interval: 100 };

const fileOf = (further: object) => ({
  'limits.yaml': { windowSeconds: WINDOW_SECONDS, ...PLENTY, ...further },
});

interface Running {
  readonly gateway: TestGateway;
  readonly files: ConfigMap;
}

async function start(further: object, store: Record<string, unknown> = {}): Promise<Running> {
  const files = mountConfigMap(fileOf(further));
  onTestFinished(() => files.remove());
  const settings = { limits: { file: files.file('limits.yaml') }, operations: { list: [] } };
  const gateway = await startGateway({ settings, store });
  onTestFinished(() => gateway.close());
  return { gateway, files };
}

const send = (gateway: TestGateway) => gateway.send('GET', '/v3/things', { token: 'lonely' });

const policyOf = async (gateway: TestGateway) => (await send(gateway)).headers.get('RateLimit-Policy') ?? '';

const HOUR = { per: 'account', points: 3, window: '1h' };

it.each([
  ['memory', () => ({})],
  ['redis', () => uniqueRedisStore()],
])(
  'with the %s store, a limit that is removed refuses nothing any more, and keeps its count',
  async (_, store) => {
    const { gateway, files } = await start({ limits: { hour: HOUR } }, store());
    for (let count = 0; count < 3; count++) expect((await send(gateway)).status).toBe(200);
    // Refused by the store, then by the denial that the gateway remembers.
    expect([(await send(gateway)).status, (await send(gateway)).status]).toEqual([429, 429]);
    files.swap(fileOf({}));
    await vi.waitFor(async () => expect((await send(gateway)).status).toBe(200), WITHIN);
    expect(await policyOf(gateway)).not.toContain('"hour"');
    files.swap(fileOf({ limits: { hour: { ...HOUR, points: 100 } } }));
    await vi.waitFor(async () => expect(await policyOf(gateway)).toContain('"hour";q=100;w=3600'), WITHIN);
    const { hour = 0 } = remainingOf(await send(gateway)) ?? {};
    expect(hour).toBeLessThanOrEqual(100 - 4);
    expect(hour).toBeGreaterThan(50);
  },
);

it('another plan is in force without a restart, and keeps the count', async () => {
  const plans = { free: { hour: 3 }, pro: { hour: 1_000 } };
  const further = (plan: string) => ({ limits: { hour: HOUR }, plans, accounts: { acct_3: { plan } } });
  const { gateway, files } = await start(further('free'));
  for (let count = 0; count < 3; count++) expect((await send(gateway)).status).toBe(200);
  expect((await send(gateway)).status).toBe(429);
  files.swap(fileOf(further('pro')));
  await vi.waitFor(async () => expect((await send(gateway)).status).toBe(200), WITHIN);
  expect(remainingOf(await send(gateway))).toMatchObject({ hour: 1_000 - 5 });
});

it('an overrides file may name the rows and plans of a changed limits file', async () => {
  const files = mountConfigMap({
    ...fileOf({}),
    'more.yaml': { accounts: { acct_3: { 'account-read': 25 } } },
  });
  onTestFinished(() => files.remove());
  const limits = { file: files.file('limits.yaml'), overrides: [files.file('more.yaml')] };
  const gateway = await startGateway({ settings: { limits, operations: { list: [] } } });
  onTestFinished(() => gateway.close());
  expect(await policyOf(gateway)).toContain('"account-read";q=25');
  files.swap({
    ...fileOf({ limits: { hour: HOUR }, plans: { pro: { 'account-write': 77 } } }),
    'more.yaml': { accounts: { acct_3: { plan: 'pro', hour: 9 } } },
  });
  await vi.waitFor(async () => {
    const policy = await policyOf(gateway);
    expect(policy).toContain('"hour";q=9;w=3600');
    expect(policy).toContain('"account-write";q=77');
  }, WITHIN);
});

it('a live limit replaces a further limit, for an Account and for a principal', async () => {
  const key = { per: 'principal', requests: 5, window: '1h' };
  const { gateway } = await start({ limits: { hour: HOUR, key } });
  const admin = { url: gateway.adminUrl };
  const why = { ...admin, why: 'launch', by: 'alice' };
  const set = await runHere(() => setLimit('acct_3', ['hour=2000'], why));
  expect(set.stdout).toMatch(/^Set: hour of acct_3: 2000 points until /);
  await runHere(() => setLimit('svc_3', ['key=7'], why));
  expect(await policyOf(gateway)).toMatch(/"hour";q=2000;w=3600, "key";q=7;w=3600/);
  expect((await runHere(() => listLimits(admin))).stdout).toMatch(/key of svc_3: 7 requests until/);
  await runHere(() => unsetLimit('acct_3', 'hour', why));
  expect(await policyOf(gateway)).toContain('"hour";q=3;w=3600');
  const wrong = await runHere(() => setLimit('acct_3', ['hours=5'], why));
  expect(wrong.failure).toContain('did you mean "hour"?');
  const usage = await (await fetch(`${gateway.adminUrl}/usage/principals/svc_3?account=acct_3`)).json();
  expect(usage).toMatchObject({
    scope: 'principal',
    buckets: [{ bucket: 'key', limit: 7, source: 'live', counts: 'requests', used: 2 }],
  });
});
