import { expect, it, onTestFinished } from 'vitest';
import { weirLog } from '../../../src/replay/input/weir-log.ts';
import { mountConfigMap } from '../../fixtures/config-map.ts';
import { LIMITS, WINDOW_SECONDS } from '../../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { linesOf } from '../../fixtures/log-lines.ts';
import { uniqueRedisStore } from '../../fixtures/redis-url.ts';

const WITHIN = { timeout: 60_000, interval: 20 };

async function start({
  settings,
  ...options
}: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway({ ...options, settings: { ...settings, log: { level: 'info' } } });
  onTestFinished(() => gateway.close());
  return gateway;
}

it('limit.near and limit.exceeded name the Account and its bucket once', async () => {
  const gateway = await start();
  const statuses: number[] = [];
  for (let count = 0; count < 24; count++) {
    statuses.push((await gateway.send('GET', '/v3/things')).status);
    if (count === 17) expect(linesOf(gateway, 'limit.near')).toEqual([]);
    if (count === 19) expect(linesOf(gateway, 'limit.exceeded')).toEqual([]);
  }
  expect(statuses.filter((status) => status === 429)).toHaveLength(4);
  await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(24);
  const of = {
    account: 'acct_1',
    organization: 'org_1',
    principal: 'svc_1',
    operation: 'listThings',
    cost: 1,
  };
  const bucket = { bucket: 'account-read', limit: 20, windowSeconds: WINDOW_SECONDS };
  expect(linesOf(gateway, 'limit.near')).toEqual([
    expect.objectContaining({ ...of, ...bucket, remaining: 1 }),
  ]);
  const exceeded = linesOf(gateway, 'limit.exceeded');
  expect(exceeded).toEqual([expect.objectContaining({ ...of, ...bucket, remaining: 0 })]);
  expect(exceeded[0]?.retryAfterMs).toBeGreaterThan(0);
});

it('the line of a refused request has the bucket, its limit, the points left and the time until the cost fits', async () => {
  const gateway = await start();
  for (let count = 0; count < 18; count++) await gateway.send('GET', '/v3/things');
  const refused = await gateway.send('GET', '/v3/reports');
  expect(refused.status).toBe(429);
  await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(19);
  const line = linesOf(gateway, 'request').find(({ status }) => status === 429);
  const bucket = { bucket: 'account-read', limit: 20, windowSeconds: WINDOW_SECONDS, remaining: 2 };
  expect(line).toMatchObject({ ...bucket, cost: 10, outcome: 'denied' });
  const retryAfterMs = Number(line?.retryAfterMs);
  expect(retryAfterMs).toBeGreaterThan(0);
  expect(Math.ceil(retryAfterMs / 1000)).toBe(Number(refused.headers.get('Retry-After')));
});

it('weir replay reads these lines, and earlier ones without a client, a trace and the numbers of a refusal', async () => {
  const gateway = await start();
  for (let count = 0; count < 22; count++) await gateway.send('GET', '/v3/things');
  await expect.poll(() => linesOf(gateway, 'request')).toHaveLength(22);
  const read = weirLog();
  const requests = gateway.lines.filter((line) => line.includes('"msg":"request"'));
  const others = gateway.lines.filter((line) => /"msg":"limit\.(near|exceeded)"/.test(line));
  expect(others.map(read)).toEqual(['other', 'other']);
  const added = /,"(traceId|clientAddress|limit|windowSeconds|remaining|retryAfterMs)":("[^"]*"|[\d.]+)/g;
  for (const line of requests) {
    const older = line.replaceAll(added, '');
    expect(older).not.toContain('traceId');
    expect(read(line)).toMatchObject({ account: 'acct_1', cost: 1, operation: { kind: 'read' } });
    expect(read(line)).toEqual(read(older));
  }
  const refused = requests.filter((line) => line.includes('"outcome":"denied"')).map(read);
  expect(refused).toMatchObject(Array.from({ length: 2 }, () => ({ refusedBy: 'account-read' })));
});

it('a changed file is one limits.changed with the difference', async () => {
  const filed = (accountRead: number) => ({
    windowSeconds: WINDOW_SECONDS,
    defaults: { ...LIMITS, 'account-read': accountRead },
    ...(accountRead === 20 ? {} : { accounts: { acct_big: { 'account-read': 50 } } }),
  });
  const mounted = mountConfigMap({ 'limits.yaml': filed(20) });
  onTestFinished(() => mounted.remove());
  const gateway = await start({ settings: { limits: { file: mounted.file('limits.yaml') } } });
  mounted.swap({ 'limits.yaml': filed(40) });
  await expect.poll(() => linesOf(gateway, 'limits.changed'), WITHIN).toHaveLength(1);
  const scope = { scope: 'account', bucket: 'account-read' };
  const [line] = linesOf(gateway, 'limits.changed');
  expect(line).toMatchObject({
    source: 'files',
    added: 1,
    removed: 0,
    changed: 1,
    difference: [
      { ...scope, change: 'changed', from: { limit: 20 }, to: { limit: 40 } },
      { ...scope, change: 'added', id: 'acct_big', to: { limit: 50 } },
    ],
  });
  expect(await gateway.metrics()).toContain(`weir_limits_info{sha="${line?.sha}"} 1`);
});

it('a live limit of an Account with a plan names the limit of the plan at every replica', async () => {
  const files = mountConfigMap({
    'limits.yaml': {
      windowSeconds: WINDOW_SECONDS,
      defaults: LIMITS,
      plans: { pro: { 'account-read': 200 } },
      organizations: { org_1: { plan: 'pro' } },
    },
  });
  onTestFinished(() => files.remove());
  const settings = { limits: { file: files.file('limits.yaml') } };
  const store = uniqueRedisStore();
  const gateways = [await start({ store, settings }), await start({ store, settings })] as const;
  const path = `${gateways[0].adminUrl}/limits/live/accounts/acct_1`;
  const body = JSON.stringify({ 'account-read': 5000, why: 'launch', by: 'alice' });
  await fetch(path, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body });
  for (const gateway of gateways)
    await expect.poll(() => linesOf(gateway, 'limits.changed'), WITHIN).toHaveLength(1);
  await fetch(`${path}?why=over&by=bob`, { method: 'DELETE' });
  for (const gateway of gateways) {
    await expect.poll(() => linesOf(gateway, 'limits.changed'), WITHIN).toHaveLength(2);
    expect(linesOf(gateway, 'limits.changed')).toMatchObject([
      { difference: [{ from: { limit: 200 }, to: { limit: 5000 } }] },
      { difference: [{ from: { limit: 5000 }, to: { limit: 200 } }] },
    ]);
  }
});

it('a live limit is one limits.changed at every replica, and so is its removal', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store })] as const;
  const path = `${gateways[0].adminUrl}/limits/live/accounts/acct_1`;
  const body = JSON.stringify({ 'account-read': 5000, why: 'launch', by: 'alice' });
  await fetch(path, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body });
  const of = { scope: 'account', id: 'acct_1', bucket: 'account-read' };
  const [filed, live] = [{ limit: 20 }, { limit: 5000, until: expect.any(String) }];
  const expected = [
    { by: 'alice', added: 1, removed: 0, difference: [{ ...of, change: 'added', from: filed, to: live }] },
    { by: 'bob', added: 0, removed: 1, difference: [{ ...of, change: 'removed', from: live, to: filed }] },
  ];
  for (const gateway of gateways) {
    await expect.poll(() => linesOf(gateway, 'limits.changed'), WITHIN).toHaveLength(1);
    expect(await gateway.metrics()).toContain('weir_live_limits 1');
  }
  await fetch(`${path}?why=over&by=bob`, { method: 'DELETE' });
  for (const gateway of gateways) {
    await expect.poll(() => linesOf(gateway, 'limits.changed'), WITHIN).toHaveLength(2);
    expect(linesOf(gateway, 'limits.changed')).toMatchObject(
      expected.map((line) => ({ source: 'live', ...line })),
    );
  }
});
