import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ShownBlock } from '../../src/admin/facts/block-api.ts';
import type { FleetTop } from '../../src/admin/fleet/fleet.ts';
import type { FleetSnapshot } from '../../src/admin/fleet/snapshot.ts';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import type { WhyAnswer } from '../../src/admin/why/why-route.ts';
import { explain } from '../../src/commands/costs/explain.ts';
import { block, unblock } from '../../src/commands/limit/block.ts';
import { listLimits } from '../../src/commands/limit/limit.ts';
import { usage } from '../../src/commands/usage.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { type SendOptions, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

const SOON = { timeout: 20_000, interval: 50 };
const WHY = { why: 'leak', by: 'alice' };

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

function ask(gateway: TestGateway, method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${gateway.adminUrl}${path}`, {
    method,
    ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }),
  });
}

const put = (gateway: TestGateway, path: string, body: object = {}) =>
  ask(gateway, 'PUT', `/blocks/${path}`, { ...WHY, ...body });

const read = async <T>(gateway: TestGateway, path: string) =>
  (await (await ask(gateway, 'GET', path)).json()) as T;

const statusOf = async (gateway: TestGateway, options?: SendOptions) =>
  (await gateway.send('GET', '/v3/things', options)).status;

it('the 429 names the block and its end, and nothing is charged', async () => {
  const gateway = await start();
  const before = Date.now();
  const made = (await (await put(gateway, 'accounts/acct_1', { for: '2h' })).json()) as ShownBlock;
  const lifeMs = Date.parse(made.until) - before;
  expect(made).toMatchObject({ scope: 'account', id: 'acct_1', bucket: 'blocked', limit: 0, ...WHY });
  const refused = await gateway.send('GET', '/v3/reports');
  expect(refused.status).toBe(429);
  const seconds = Number(refused.headers.get('Retry-After'));
  expect(Math.abs(seconds - lifeMs / 1_000)).toBeLessThan(120);
  for (const name of ['RateLimit', 'RateLimit-Policy', 'Service-RateLimit-Mode'])
    expect(refused.headers.has(name), name).toBe(false);
  const problem = (await refused.json()) as { detail: string; extensions: object };
  expect(problem).toMatchObject({
    code: 'RateLimitExceeded',
    extensions: { bucket: 'blocked', limit: 0, windowSeconds: 0, costPoints: 10 },
  });
  expect(problem.detail).toMatch(/^Account acct_1 is blocked until \d{4}-\S+:\d\dZ\.$/);
  expect(problem.detail).not.toContain(WHY.why);
  const { buckets } = await read<Usage>(gateway, '/usage/accounts/acct_1');
  expect(buckets.map(({ used }) => used)).toEqual([0, 0, 0, 0]);
  expect(gateway.upstream.seen).toEqual([]);
});

it.each([
  ['principals/svc_1', 'Principal svc_1', [429, 200, 200]],
  ['organizations/org_1', 'The Organization', [429, 429, 200]],
  ['accounts/acct_2', 'Account acct_2', [200, 429, 200]],
])('%s are blocked, and nobody else is', async (path, name, statuses) => {
  const gateway = await start();
  await put(gateway, path);
  const tokens = ['service', 'other', 'lonely'];
  expect(await Promise.all(tokens.map((token) => statusOf(gateway, { token })))).toEqual(statuses);
  const blocked = tokens[statuses.indexOf(429)] ?? '';
  const { detail } = (await (await gateway.send('GET', '/v3/things', { token: blocked })).json()) as {
    detail: string;
  };
  expect(detail.startsWith(`${name} is blocked until `)).toBe(true);
});

it('an address is blocked whatever it asks for, and its token is not looked at', async () => {
  const gateway = await start({ settings: { listen: { trustedProxies: ['127.0.0.0/8', '::1/128'] } } });
  const made = (await (await put(gateway, 'addresses/2001:db8::7')).json()) as ShownBlock;
  expect(made).toMatchObject({ scope: 'address', id: '2001:db8::/64' });
  const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });
  expect(await statusOf(gateway, from('2001:db8::8'))).toBe(429);
  expect(await statusOf(gateway, { ...from('2001:db8::8'), token: 'wrong' })).toBe(429);
  expect(await statusOf(gateway, from('2001:db8:1::8'))).toBe(200);
  const options = await gateway.send('OPTIONS', '/v3/things', from('2001:db8::8'));
  expect(options.status).toBe(429);
  await expect
    .poll(async () => (await read<Usage>(gateway, '/usage/addresses/2001:db8::7')).recent['1m'].refused, SOON)
    .toBe(2);
});

it('a blocked address gets nothing but the 429, whatever would be answered before the operation is known', async () => {
  const origin = 'https://app.example.com';
  const path = '/.well-known/rate-limits';
  const gateway = await start({
    settings: {
      listen: { trustedProxies: ['127.0.0.0/8', '::1/128'] },
      cors: { origins: [origin] },
      usage: { path },
      operations: { openapi: 'openapi.yaml', unlisted: 'reject' },
      log: { level: 'info' },
    },
  });
  await put(gateway, 'addresses/192.0.2.7');
  const preflight = { Origin: origin, 'Access-Control-Request-Method': 'GET' };
  const asked = [
    ['OPTIONS', '/v3/things', preflight, 204],
    ['OPTIONS', path, {}, 204],
    ['GET', '/v3/nothing', {}, 404],
    ['GET', '/v3/%zz', {}, 400],
  ] as const;
  const idOf = (method: string, target: string) => `${method}${target.replaceAll(/[^a-z]/g, '-')}`;
  for (const [method, target, headers, otherwise] of asked) {
    const from = (address: string) => ({
      headers: { ...headers, 'X-Forwarded-For': address, 'X-Request-Id': idOf(method, target) },
    });
    const name = `${method} ${target}`;
    expect((await gateway.send(method, target, from('192.0.2.8'))).status, name).toBe(otherwise);
    expect((await gateway.send(method, target, from('192.0.2.7'))).status, name).toBe(429);
  }
  const lines = () =>
    gateway.lines.filter((line) => line.includes('"bucket":"blocked"') && line.includes('"msg":"request"'));
  await expect.poll(lines, SOON).toHaveLength(asked.length);
  for (const line of lines()) expect(line).toContain('"address":"192.0.2.7"');
  // Each is explained, and among the refusals of the address.
  for (const [method, target] of asked) {
    const why = () => read<WhyAnswer>(gateway, `/refusals/${idOf(method, target)}`);
    await expect
      .poll(async () => (await why()).refusals, SOON)
      .toMatchObject([
        { operation: target === path ? 'usage' : null, address: '192.0.2.7', limit: { bucket: 'blocked' } },
      ]);
    expect((await why()).refusals[0]?.text).toMatch(/^(usage: )?Address 192\.0\.2\.7 is blocked until /);
  }
  const { refusals } = await read<FleetSnapshot>(gateway, '/fleet');
  expect(refusals.map(({ address, bucket }) => [address, bucket])).toContainEqual(['192.0.2.7', 'blocked']);
});

it('a range of addresses is blocked at every replica, and nobody outside of it', async () => {
  const store = uniqueRedisStore();
  const settings = { listen: { trustedProxies: ['127.0.0.0/8', '::1/128'] } };
  const gateways = [await start({ store, settings }), await start({ store, settings })] as const;
  const made = (await (await put(gateways[0], 'addresses/10.1.2.3%2F8')).json()) as ShownBlock;
  expect(made.id).toBe('10.0.0.0/8');
  await put(gateways[0], 'addresses/2001:db8::%2F32');
  const from = (address: string) => statusOf(gateways[1], { headers: { 'X-Forwarded-For': address } });
  await expect.poll(() => from('2001:db8:1:2::3'), SOON).toBe(429);
  expect(await from('10.200.0.1')).toBe(429);
  expect([await from('11.0.0.1'), await from('2001:db9::1')]).toEqual([200, 200]);
  const within = await ask(gateways[1], 'DELETE', '/blocks/addresses/10.200.0.1?why=over&by=bob');
  expect(await within.json()).toEqual({
    error: 'address 10.200.0.1 is not blocked. It is within 10.0.0.0/8, which is.',
  });
  expect((await ask(gateways[1], 'DELETE', '/blocks/addresses/10.0.0.0%2F8?why=over&by=bob')).status).toBe(
    200,
  );
  await expect.poll(() => from('10.200.0.1'), SOON).toBe(200);
});

it('only a wider range that is blocked is named to those who unblock', async () => {
  const gateway = await start();
  await put(gateway, 'addresses/10.0.0.0%2F24');
  await put(gateway, 'addresses/2001:db8::%2F48');
  const hintOf = async (id: string) => {
    const path = `/blocks/addresses/${encodeURIComponent(id)}?why=over&by=bob`;
    const { error } = (await (await ask(gateway, 'DELETE', path)).json()) as { error: string };
    return error.split(' is not blocked.')[1];
  };
  const within = (range: string) => ` It is within ${range}, which is.`;
  expect(await hintOf('10.0.0.0/8')).toBe('');
  expect(await hintOf('10.0.0.128/25')).toBe(within('10.0.0.0/24'));
  expect(await hintOf('10.0.0.9')).toBe(within('10.0.0.0/24'));
  expect(await hintOf('10.0.1.0')).toBe('');
  expect(await hintOf('2001:db8::/32')).toBe('');
  expect(await hintOf('2001:db8::1')).toBe(within('2001:db8::/48'));
});

it('a stranger gets the same answers as before', async () => {
  const gateway = await start();
  const answers = async () => {
    const foreign = await gateway.send('GET', '/v3/things', { token: 'lonely', account: 'acct_1' });
    const wrong = await gateway.send('GET', '/v3/things', { token: 'wrong' });
    return [foreign.status, ((await foreign.json()) as { detail: string }).detail, wrong.status];
  };
  const before = await answers();
  for (const path of ['accounts/acct_1', 'organizations/org_1', 'principals/svc_1']) await put(gateway, path);
  expect(await answers()).toEqual(before);
});

it('of several blocks the one that ends last is named', async () => {
  const gateway = await start();
  await put(gateway, 'organizations/org_1', { for: '3h' });
  await put(gateway, 'accounts/acct_1', { for: '2h' });
  await put(gateway, 'principals/svc_1', { for: '1h' });
  const refused = await gateway.send('GET', '/v3/things');
  expect(((await refused.json()) as { detail: string }).detail).toContain('The Organization is blocked');
  expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(7_200);
});

it('every replica refuses, one that starts later as well, until it is undone', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store })] as const;
  await put(gateways[0], 'accounts/acct_1');
  expect(await statusOf(gateways[0])).toBe(429);
  await expect.poll(() => statusOf(gateways[1]), SOON).toBe(429);
  const later = await start({ store });
  expect(await statusOf(later)).toBe(429);
  const shown = await read<ShownBlock[]>(gateways[0], '/limits/live');
  for (const gateway of gateways) expect(await read(gateway, '/blocks')).toEqual(shown);
  expect((await ask(later, 'DELETE', '/blocks/accounts/acct_1?why=over&by=bob')).status).toBe(200);
  for (const gateway of [...gateways, later]) {
    await expect.poll(() => statusOf(gateway), SOON).toBe(200);
    expect(await read(gateway, '/limits/live')).toEqual([]);
  }
});

it('it ends on its own', async () => {
  const gateway = await start();
  await put(gateway, 'accounts/acct_1', { for: '5s' });
  expect(await statusOf(gateway)).toBe(429);
  await expect.poll(() => statusOf(gateway), { timeout: 20_000, interval: 250 }).toBe(200);
  expect(await read(gateway, '/blocks')).toEqual([]);
});

it('usage, the rankings, the metrics and the log show it', async () => {
  const gateway = await start({ settings: { log: { level: 'info' } } });
  const made = (await (await put(gateway, 'organizations/org_1')).json()) as ShownBlock;
  for (let count = 0; count < 3; count++) expect(await statusOf(gateway)).toBe(429);
  const { blocks, recent } = await read<Usage>(gateway, '/usage/accounts/acct_1');
  expect(blocks).toEqual([made]);
  expect(recent['1m'].refused).toBe(3);
  const { accounts, organizations } = await read<FleetTop>(gateway, '/usage/top');
  expect(accounts.byRefused).toMatchObject([{ id: 'acct_1', refused: 3 }]);
  expect(organizations.byRefused).toMatchObject([{ id: 'org_1', refused: 3, blockedUntil: made.until }]);
  expect(await gateway.metrics()).toContain(
    'weir_requests_total{kind="read",bucket="blocked",outcome="denied"} 3',
  );
  const lines = gateway.lines.map((line) => JSON.parse(line));
  expect(lines.filter(({ audit }) => audit)).toMatchObject([
    { action: 'blocked', outcome: 'changed', ...WHY, block: { scope: 'organization', id: 'org_1' } },
  ]);
  expect(lines.filter(({ msg, audit }) => msg === 'block.made' && !audit)).toMatchObject([
    { id: 'org_1', ...WHY },
  ]);
  const requests = lines.filter(({ bucket, msg }) => bucket === 'blocked' && msg !== 'limit.exceeded');
  expect(requests).toHaveLength(3);
});

describe('a block that cannot be made', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it.each([
    ['accounts/acct_1', { for: '8d' }, /at most 7d/],
    ['accounts/acct_1', { for: 'ever' }, /at most 7d/],
    ['accounts/acct_1', { why: '' }, /why: must be text/],
    ['accounts/acct_1', { until: 'tomorrow' }, /until: is unknown/],
    ['accounts/acct%201', {}, /must have an id/],
    ['addresses/nowhere', {}, /is neither an IP address nor a range/],
    ['addresses/10.0.0.0%2F33', {}, /is neither an IP address nor a range/],
    ['addresses/0.0.0.0%2F0', {}, /needs force: --force, or "force": true in JSON\.$/],
    ['accounts/acct_1', { force: 'yes' }, /force: must be true or false/],
  ])('%s with %j is refused', async (path, body, message) => {
    const response = await put(gateway, path, body);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toMatch(message);
    expect(await read(gateway, '/blocks')).toEqual([]);
  });
});

it('blocks stay in force while Redis is down, and none can be made', async () => {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const gateway = await start({ store: uniqueRedisStore(server.url) });
  await put(gateway, 'accounts/acct_1');
  await server.kill();
  expect(await statusOf(gateway)).toBe(429);
  expect((await put(gateway, 'accounts/acct_3')).status).toBe(503);
  expect(await statusOf(gateway, { token: 'lonely' })).toBe(200);
});

it('blocks, live limits and revocations are unknown, not none, until Redis was read once', async () => {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  await server.kill();
  const gateway = await start({ store: uniqueRedisStore(server.url) });
  const requests = [
    ['GET', '/blocks'],
    ['GET', '/limits/live'],
    ['GET', '/revocations'],
    ['DELETE', '/blocks/accounts/acct_1?why=found'],
  ] as const;
  const ask = (method: string, path: string) => fetch(gateway.adminUrl + path, { method });
  for (const [method, path] of requests) {
    const response = await ask(method, path);
    expect([response.status, response.headers.get('age'), await response.json()]).toEqual([
      503,
      null,
      { error: expect.stringMatching(/are in Redis, which could not be read since this replica started\.$/) },
    ]);
  }
  const options = { url: gateway.adminUrl, why: 'found' };
  for (const command of [() => listLimits(options), () => unblock('acct_1', options)]) {
    const { stdout, failure } = await runHere(command);
    expect([stdout, failure]).toEqual([
      '',
      expect.stringContaining('503: The live limits and blocks are in'),
    ]);
  }
  await server.start();
  for (const [method, path] of requests.slice(0, 3))
    await expect.poll(async () => (await ask(method, path)).status, { timeout: 30_000 }).toBe(200);
  await server.kill();
  expect(await read(gateway, '/blocks')).toEqual([]);
});

describe('weir limit', () => {
  it('blocks, lists and unblocks, and refuses an id that nobody has', async () => {
    const gateway = await start();
    const options = { url: gateway.adminUrl, ...WHY };
    const run = async (act: () => Promise<void>) => (await runHere(act)).stdout;
    const blocked = /^account acct_1 is blocked until \S+Z, by alice: leak\n$/;
    expect(await run(() => block('acct_1', options))).toMatch(blocked);
    expect(await run(() => usage('acct_1', options))).toMatch(/\naccount acct_1 is blocked until/);
    const { failure: wrong } = await runHere(() => block('svc_1', options));
    expect(wrong).toContain('answered 404: There is no account svc_1. svc_1 is a principal.');
    expect(await run(() => block('svc_1', { ...options, force: true }))).toMatch(/^account svc_1 is blocked/);
    expect(await run(() => block('svc_1', { ...options, scope: 'principal' }))).not.toContain('There is no');
    expect(await run(() => block('192.0.2.1', options))).toMatch(/^address 192.0.2.1 is blocked/);
    const { failure: mistyped } = await runHere(() => block('10.0.0.300', options));
    expect(mistyped).toContain('10.0.0.300 is neither an IP address nor a range');
    expect((await run(() => listLimits(options))).split('\n')).toHaveLength(5);
    expect(await run(() => unblock('svc_1', { ...options, scope: 'account' }))).toBe(
      'account svc_1 is no longer blocked.\n',
    );
    for (const id of ['svc_1', 'acct_1', '192.0.2.1']) await run(() => unblock(id, options));
    expect(await run(() => listLimits(options))).toBe('There are no live limits, and nothing is blocked.\n');
    const { failure } = await runHere(() => unblock('acct_1', options));
    expect(failure).toBe('acct_1 is not blocked: weir limit list shows who is.');
    const { failure: scope } = await runHere(() => block('x', { ...options, scope: 'team' }));
    expect(scope).toBe('--scope takes account, principal, organization, address.');
  });

  it('weir explain shows it', async () => {
    const store = uniqueRedisStore();
    const gateway = await start({ store });
    await put(gateway, 'principals/svc_1');
    const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:2', store });
    const { stdout } = await runHere(() => explain('GET', '/v3/things', { config, token: 'service' }));
    expect(stdout).toMatch(/429 RateLimitExceeded: Principal svc_1 is blocked until/);
    expect(stdout).not.toMatch(/charged to|policy/);
    process.exitCode = undefined;
  });

  it('weir explain of a request without an address is independent of blocked ranges', async () => {
    const store = uniqueRedisStore();
    const gateway = await start({ store });
    await put(gateway, `addresses/${encodeURIComponent('10.0.0.0/8')}`);
    const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:2', store });
    const asked = { config, token: 'service' };
    const { stdout, failure } = await runHere(() => explain('GET', '/v3/things', asked));
    expect([failure, stdout]).toEqual([undefined, expect.stringContaining('acct_1')]);
    const { stdout: within } = await runHere(() =>
      explain('GET', '/v3/things', { ...asked, address: '10.1.2.3' }),
    );
    expect(within).toMatch(/429 RateLimitExceeded: Address 10\.0\.0\.0\/8 is blocked until/);
    process.exitCode = undefined;
  });
});
