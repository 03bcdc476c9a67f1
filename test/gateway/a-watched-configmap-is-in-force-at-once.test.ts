import { expect, it, onTestFinished, vi } from 'vitest';
import { mountConfigMap } from '../fixtures/config-map.ts';
import { LIMITS, WINDOW_SECONDS } from '../fixtures/configuration.ts';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startApiServer, type TestApiServer } from '../fixtures/kubernetes-api.ts';

const WITHIN = { timeout: 60_000, interval: 100 };

const limitsOf = (accountRead: unknown) => ({
  'limits.yaml': JSON.stringify({
    windowSeconds: WINDOW_SECONDS,
    defaults: { ...LIMITS, 'account-read': accountRead },
  }),
});

function mount(data: Readonly<Record<string, string>>) {
  const folder = mountConfigMap(data);
  onTestFinished(() => folder.remove());
  return folder;
}

async function serve(objects: Readonly<Record<string, Record<string, string>>>): Promise<TestApiServer> {
  const server = await startApiServer(objects);
  onTestFinished(() => server.close());
  return server;
}

const kubernetesOf = (server: TestApiServer, watch: readonly object[]) => ({
  kubernetes: { url: server.url, credentialsFolder: server.credentialsFolder, watch },
});

async function start(settings: Record<string, unknown>): Promise<TestGateway> {
  const gateway = await startGateway({ settings });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function expectLimit(gateway: TestGateway, limit: number): Promise<void> {
  await vi.waitFor(async () => {
    const { headers } = await gateway.send('GET', '/v3/things', { token: 'lonely' });
    expect(headers.get('RateLimit-Policy')).toContain(`"account-read";q=${limit};`);
  }, WITHIN);
}

/** A gateway with mounted limits of 20 that watches their ConfigMap. */
async function watchLimits(inCluster = limitsOf(20)) {
  const folder = mount(limitsOf(20));
  const server = await serve({ 'configmaps/weir-limits': inCluster });
  const gateway = await start({
    limits: { file: folder.file('limits.yaml') },
    ...kubernetesOf(server, [{ kind: 'ConfigMap', name: 'weir-limits', folder: folder.folder }]),
  });
  return { folder, server, gateway };
}

/** What one request takes from the bucket. */
async function costOf(gateway: TestGateway, token: string): Promise<number> {
  const before = remainingOf(await gateway.send('GET', '/v3/things', { token }));
  const after = remainingOf(await gateway.send('GET', '/v3/things', { token }));
  return (before?.['account-read'] ?? 0) - (after?.['account-read'] ?? 0);
}

const untilConnected = (gateway: TestGateway, state: 0 | 1) =>
  vi.waitFor(async () => {
    expect(await gateway.metrics()).toContain(
      `weir_kubernetes_watch_connected{object="weir-limits"} ${state}`,
    );
  }, WITHIN);

it('limits: a change is in force while the mounted file is still the old one', async () => {
  const { server, gateway } = await watchLimits();
  await untilConnected(gateway, 1);
  server.put('configmaps/weir-limits', limitsOf(5000));
  await expectLimit(gateway, 5000);
});

it('limits: a container that starts with a mount that lags behind gets the newest version immediately', async () => {
  const { gateway } = await watchLimits(limitsOf(5000));
  await expectLimit(gateway, 5000);
});

it('limits: a mount that lags behind does not undo a change', async () => {
  const { server, gateway, folder } = await watchLimits();
  await untilConnected(gateway, 1);
  server.put('configmaps/weir-limits', limitsOf(30));
  server.put('configmaps/weir-limits', limitsOf(40));
  await expectLimit(gateway, 40);
  await server.stop();
  await untilConnected(gateway, 0);
  folder.swap(limitsOf(30));
  await server.listen();
  await untilConnected(gateway, 1);
  await expectLimit(gateway, 40);
  expect(await gateway.metrics()).toContain('weir_reloads_total{file="limits",outcome="success"} 1');
});

it('limits: an invalid change is refused, and the next valid one is in force', async () => {
  const { server, gateway } = await watchLimits();
  await untilConnected(gateway, 1);
  server.put('configmaps/weir-limits', limitsOf('many'));
  await vi.waitFor(async () => {
    expect(await gateway.metrics()).toContain('weir_limits_last_reload_successful 0');
  }, WITHIN);
  await expectLimit(gateway, 20);
  server.put('configmaps/weir-limits', limitsOf(50));
  await expectLimit(gateway, 50);
});

it('limits: the metric shows the same version at every replica, and another one after a change', async () => {
  const { server, gateway } = await watchLimits();
  const other = await start({ limits: { file: mount(limitsOf(20)).file('limits.yaml') } });
  const versionOf = async (one: TestGateway) =>
    (await one.metrics()).match(/^weir_limits_info\{sha="([0-9a-f]{12})"\} 1$/m)?.[1];
  const before = await versionOf(gateway);
  expect(before).toBeDefined();
  expect(await versionOf(other)).toBe(before);
  server.put('configmaps/weir-limits', limitsOf(50));
  await expectLimit(gateway, 50);
  expect(await versionOf(gateway)).not.toBe(before);
});

it('limits: without permission the mounted file is polled, and the metric is 0', async () => {
  const { server, gateway, folder } = await watchLimits();
  server.refuse(403);
  await untilConnected(gateway, 0);
  folder.swap(limitsOf(30));
  await expectLimit(gateway, 30);
  server.refuse(undefined);
  server.put('configmaps/weir-limits', limitsOf(40));
  await untilConnected(gateway, 1);
  await expectLimit(gateway, 40);
});

it('overrides, costs and tokens: each is reloaded from the object that is mounted in its folder', async () => {
  const priceOf = (cost: number) => ({
    'openapi.yaml': JSON.stringify({
      openapi: '3.1.0',
      paths: { '/v3/things': { get: { operationId: 'listThings', 'x-weir': { cost } } } },
    }),
  });
  const overridesOf = (limit: number) => ({
    'a.yaml': `accounts: { acct_lonely: { account-read: ${limit} } }`,
  });
  const identitiesOf = (token: string) => ({
    'identities.yaml': JSON.stringify({
      tokens: { [token]: 'svc' },
      principals: { svc: { type: 'ServiceAccount', account: 'acct_lonely' } },
      accounts: { acct_lonely: {} },
    }),
  });
  const objects = {
    overrides: { kind: 'ConfigMap', data: overridesOf(100), folder: mount(overridesOf(100)) },
    prices: { kind: 'ConfigMap', data: priceOf(1), folder: mount(priceOf(1)) },
    tokens: { kind: 'Secret', data: identitiesOf('lonely'), folder: mount(identitiesOf('lonely')) },
  };
  const server = await serve({
    'configmaps/overrides': objects.overrides.data,
    'configmaps/prices': objects.prices.data,
    'secrets/tokens': objects.tokens.data,
  });
  const watch = Object.entries(objects).map(([name, { kind, folder }]) => ({
    kind,
    name,
    folder: folder.folder,
  }));
  const limits = mount(limitsOf(20));
  const gateway = await start({
    limits: { file: limits.file('limits.yaml'), overrides: [objects.overrides.folder.folder] },
    operations: { openapi: objects.prices.folder.file('openapi.yaml') },
    identity: { kind: 'static', file: objects.tokens.folder.file('identities.yaml') },
    ...kubernetesOf(server, watch),
  });
  await vi.waitFor(() => expect(server.watches()).toBe(3), WITHIN);
  server.put('configmaps/overrides', { 'z.yaml': 'accounts: { acct_lonely: { account-read: 700 } }' });
  server.put('configmaps/prices', priceOf(7));
  server.put('secrets/tokens', identitiesOf('renewed'));
  await vi.waitFor(async () => {
    const { status, headers } = await gateway.send('GET', '/v3/things', { token: 'renewed' });
    expect([status, headers.get('RateLimit-Policy')]).toEqual([200, expect.stringContaining(';q=700;')]);
    expect(await costOf(gateway, 'renewed')).toBe(7);
  }, WITHIN);
  expect((await gateway.send('GET', '/v3/things', { token: 'lonely' })).status).toBe(401);
});

it('logs one warning for any number of failures, and one message when all watches have recovered', async () => {
  const folder = mount(limitsOf(20));
  const server = await serve({ 'configmaps/weir-limits': limitsOf(20), 'configmaps/others': {} });
  server.refuse(403);
  const watch = ['weir-limits', 'others'].map((name) => ({ kind: 'ConfigMap', name, folder: folder.folder }));
  const gateway = await startGateway({
    settings: {
      limits: { file: folder.file('limits.yaml') },
      log: { level: 'info' },
      ...kubernetesOf(server, watch),
    },
  });
  onTestFinished(() => gateway.close());
  await vi.waitFor(() => expect(server.requests.length).toBeGreaterThan(5), WITHIN);
  const warnings = gateway.lines.filter((line) => line.includes('cannot be watched'));
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain('is refused here');
  server.refuse(undefined);
  await vi.waitFor(() => expect(gateway.lines.join()).toContain('all objects are watched again'), WITHIN);
});
