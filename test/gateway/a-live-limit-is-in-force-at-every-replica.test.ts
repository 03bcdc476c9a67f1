import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ShownLimit } from '../../src/admin/facts/live-limit-api.ts';
import type { Usage } from '../../src/admin/usage/owner-usage.ts';
import { explain } from '../../src/commands/costs/explain.ts';
import { listLimits, setLimit, unsetLimit } from '../../src/commands/limit/limit.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';

const SOON = { timeout: 20_000, interval: 50 };
const HOUR_MS = 3_600_000;

type Options = Parameters<typeof startGateway>[0];

async function start(options: Options = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The limit of account-read that the next response of acct_1 names. */
async function limitOf(gateway: TestGateway): Promise<string | undefined> {
  const response = await gateway.send('GET', '/v3/things');
  return /"account-read";q=(\d+)/.exec(response.headers.get('RateLimit-Policy') ?? '')?.[1];
}

const WHY = { why: 'launch', by: 'alice' };

function send(gateway: TestGateway, method: string, path: string, body?: object, headers = {}) {
  return fetch(`${gateway.adminUrl}/limits/live${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const put = (gateway: TestGateway, body: object, path = '/accounts/acct_1') =>
  send(gateway, 'PUT', path, { ...WHY, ...body });

const list = async (gateway: TestGateway) => (await (await send(gateway, 'GET', '')).json()) as ShownLimit[];

it('raises a limit in one process, with the memory store', async () => {
  const gateway = await start();
  expect(await limitOf(gateway)).toBe('20');
  expect((await put(gateway, { 'account-read': 5000 })).status).toBe(200);
  expect(await limitOf(gateway)).toBe('5000');
});

it('every replica applies it, one that starts later as well, and applies the files again when it is removed', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store })] as const;
  expect(await limitOf(gateways[1])).toBe('20');
  const before = Date.now();
  const response = await put(gateways[0], { 'account-read': 5000, for: '2h' });
  const [set] = (await response.json()) as ShownLimit[];
  expect(set).toMatchObject({ scope: 'account', id: 'acct_1', bucket: 'account-read', limit: 5000, ...WHY });
  const lifeMs = Date.parse(set?.until ?? '') - before;
  expect(Math.abs(lifeMs - 2 * HOUR_MS)).toBeLessThan(HOUR_MS / 2);

  expect(await limitOf(gateways[0])).toBe('5000');
  await expect.poll(() => limitOf(gateways[1]), SOON).toBe('5000');
  const later = await start({ store });
  expect(await limitOf(later)).toBe('5000');
  for (const gateway of [...gateways, later]) expect(await list(gateway)).toEqual([set]);

  const removed = await send(later, 'DELETE', '/accounts/acct_1?why=over&by=bob');
  expect(removed.status).toBe(200);
  for (const gateway of [...gateways, later]) {
    await expect.poll(() => limitOf(gateway), SOON).toBe('20');
    expect(await list(gateway)).toEqual([]);
  }
  expect(await limitOf(await start({ store }))).toBe('20');
});

it('the last of several changes is in force at a replica that starts later', async () => {
  const store = uniqueRedisStore();
  const gateway = await start({ store });
  for (const limit of [100, 300, 200]) await put(gateway, { 'account-read': limit });
  expect(await limitOf(await start({ store }))).toBe('200');
  await send(gateway, 'DELETE', '/accounts/acct_1?why=over');
  await put(gateway, { 'account-read': 400 });
  expect(await limitOf(await start({ store }))).toBe('400');
});

it('an Organization has live limits too, and one with the limit none gets one', async () => {
  const gateway = await start({ limits: { organizations: { org_1: { 'organization-read': 'none' } } } });
  const policy = async () => (await gateway.send('GET', '/v3/things')).headers.get('RateLimit-Policy');
  expect(await policy()).not.toContain('organization-read');
  await put(gateway, { 'organization-read': 700 }, '/organizations/org_1');
  expect(await policy()).toContain('"organization-read";q=700;w=60');
});

it('it expires on its own, and so does its record in Redis', async () => {
  const store = uniqueRedisStore();
  const gateway = await start({ store });
  expect((await put(gateway, { 'account-read': 5000, for: '2s' })).status).toBe(200);
  const client = new Redis(sharedRedisUrl());
  onTestFinished(async () => client.disconnect());
  const lifeMs = await client.pttl(`${store.keyPrefix}:1:limits:record`);
  expect(lifeMs).toBeLessThanOrEqual(2_000);
  await expect.poll(() => limitOf(gateway), SOON).toBe('20');
  expect(await list(gateway)).toEqual([]);
  expect(await client.exists(`${store.keyPrefix}:1:limits:record`)).toBe(0);
});

it('a limit that was replaced does not come back after the end of what replaced it, though Redis has it again', async () => {
  const store = uniqueRedisStore();
  const gateway = await start({ store });
  const client = new Redis(sharedRedisUrl());
  onTestFinished(async () => client.disconnect());
  const channel = `${store.keyPrefix}:1:limits`;
  await put(gateway, { 'account-read': 5000, for: '1h' });
  const [replaced = ''] = await client.zrange(`${channel}:record`, '0', '-1');
  await put(gateway, { 'account-read': 2000, for: '1s' });
  expect(await limitOf(gateway)).toBe('2000');
  await expect.poll(() => limitOf(gateway), SOON).toBe('20');

  // As a replica that was away or an older copy of the data brings it.
  const other = replaced.replace('acct_1', 'acct_2');
  for (const text of [replaced, other]) {
    await client.zadd(`${channel}:record`, Date.now() + HOUR_MS / 2, text);
    await client.publish(channel, text);
  }
  await expect.poll(() => list(gateway), SOON).toHaveLength(1);
  const later = await start({ store });
  for (const one of [gateway, later]) {
    expect(await list(one)).toMatchObject([{ id: 'acct_2', limit: 5000 }]);
    expect(await limitOf(one)).toBe('20');
  }
});

it('usage shows it with its end, its reason and its author', async () => {
  const gateway = await start();
  await put(gateway, { 'account-read': 5000 });
  const usage = (await (await fetch(`${gateway.adminUrl}/usage/accounts/acct_1`)).json()) as Usage;
  expect(usage.buckets[0]).toMatchObject({ bucket: 'account-read', limit: 5000, source: 'live', ...WHY });
  expect(usage.buckets[0]?.until).toBe((await list(gateway))[0]?.until);
  expect(usage.buckets[1]).toMatchObject({ bucket: 'account-write', source: 'default', why: null, by: null });
});

describe('what is refused changes nothing', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it.each([
    [
      { 'account-read': 9 },
      /accounts\.acct_1\.account-read: the limit 9 is below the cost 10 of operation reportRead/,
    ],
    [
      { 'account-read': 0 },
      /^accounts\.acct_1\.account-read: must be a whole number from 1 to 1000000000, is 0$/,
    ],
    [
      { bogus: 7 },
      /^accounts\.acct_1\.bogus: unknown key "bogus": expected one of account-read, account-write$/,
    ],
    [{ until: 7 }, /unknown key "until"/],
    [{ 'account-read': '50' }, /account-read: must be a whole number/],
    [{ 'acount-read': 50 }, /unknown key "acount-read": did you mean "account-read"/],
    [{ 'organization-read': 50 }, /unknown key "organization-read"/],
    [{}, /at least one bucket/],
    [{ 'account-read': 50, for: '8d' }, /at most 7d/],
    [{ 'account-read': 50, for: '0h' }, /at most 7d/],
    [{ 'account-read': 50, for: 'ever' }, /at most 7d/],
    [{ 'account-read': 50, why: ' ' }, /why: must be text/],
    [{ 'account-read': 50, why: 'x'.repeat(201) }, /why: must be text/],
  ])('%j is refused, as a file would be', async (body, message) => {
    const response = await put(gateway, body);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toMatch(message);
    expect(await limitOf(gateway)).toBe('20');
  });

  it.each(['1e999', '-1e999', '1.5', 'null'])('%s is no limit', async (limit) => {
    const response = await fetch(`${gateway.adminUrl}/limits/live/accounts/acct_1`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: `{"account-read": ${limit}, "why": "launch"}`,
    });
    expect(await response.json()).toEqual({ error: 'account-read: must be a whole number of points.' });
    expect(response.status).toBe(400);
    expect(await limitOf(gateway)).toBe('20');
    expect(await list(gateway)).toEqual([]);
  });
});

it('weir explain shows it', async () => {
  const store = uniqueRedisStore();
  const gateway = await start({ store });
  await put(gateway, { 'account-read': 5000 });
  const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:2', store });
  const run = (json?: true) =>
    runHere(() => explain('GET', '/v3/things', { config, token: 'service', ...(json && { json }) }));
  const { buckets } = JSON.parse((await run(true)).stdout) as { buckets: readonly object[] };
  const [set] = await list(gateway);
  expect(buckets[0]).toMatchObject({
    bucket: 'account-read',
    limit: 5000,
    live: { until: set?.until, ...WHY },
  });
  expect(buckets[1]).not.toHaveProperty('live');
  expect((await run()).stdout).toMatch(
    /account-read of acct_1: 5000 points in 1 min, live until \S+Z, set by alice: launch/,
  );
});

it('weir explain does without Redis, and says so', async () => {
  const store = uniqueRedisStore('redis://127.0.0.1:1');
  const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:2', store });
  const { stdout, stderr } = await runHere(() => explain('GET', '/v3/things', { config, token: 'service' }));
  expect(stdout).toContain('account-read of acct_1: 20 points in 1 min');
  expect(stderr).toMatch(
    /^Live limits, blocks and revocations are not known: Redis does not answer \(.*ECONNREFUSED.*\)\.\n$/,
  );
});

it('removing what is not there is refused', async () => {
  const gateway = await start();
  expect((await send(gateway, 'DELETE', '/accounts/acct_1?why=x')).status).toBe(400);
  await put(gateway, { 'account-read': 50 });
  expect((await send(gateway, 'DELETE', '/accounts/acct_1?why=x&bucket=account-write')).status).toBe(400);
  expect((await send(gateway, 'DELETE', '/accounts/acct_1')).status).toBe(400);
  expect(await limitOf(gateway)).toBe('50');
});

it('a DELETE takes its reason and its buckets from the query or from a body like the body of the PUT', async () => {
  const gateway = await start();
  const body = { 'account-read': 50, for: '2h', ...WHY };
  await put(gateway, { ...body, 'account-write': 60 });
  const removed = await send(gateway, 'DELETE', '/accounts/acct_1', body);
  expect([removed.status, await removed.json()]).toMatchObject([200, [{ bucket: 'account-read', ...WHY }]]);
  expect(await limitOf(gateway)).toBe('20');
  const rest = await send(gateway, 'DELETE', '/accounts/acct_1?by=bob', { why: 'over' });
  expect([rest.status, await rest.json()]).toMatchObject([
    200,
    [{ bucket: 'account-write', why: 'over', by: 'bob' }],
  ]);
});

it('a DELETE may name several buckets in the query', async () => {
  const gateway = await start();
  await put(gateway, { 'account-read': 50, 'account-write': 60 });
  const query = 'why=over&bucket=account-read&bucket=account-write';
  const removed = await send(gateway, 'DELETE', `/accounts/acct_1?${query}`);
  expect([removed.status, await removed.json()]).toMatchObject([
    200,
    [{ bucket: 'account-read' }, { bucket: 'account-write' }],
  ]);
});

it('no page of another site can act', async () => {
  const gateway = await start();
  for (const origin of ['https://attacker.example', 'null', 'http://127.0.0.1:1']) {
    const headers = { Origin: origin };
    const response = await send(gateway, 'PUT', '/accounts/acct_1', { ...WHY, 'account-read': 50 }, headers);
    expect(response.status, origin).toBe(403);
  }
  const form = await fetch(`${gateway.adminUrl}/limits/live/accounts/acct_1`, {
    method: 'PUT',
    headers: { 'Content-Type': 'text/plain' },
    body: JSON.stringify({ ...WHY, 'account-read': 50 }),
  });
  expect(form.status).toBe(400);
  expect(await limitOf(gateway)).toBe('20');
});

describe('while Redis is down', () => {
  it('live limits stay in force, none can be set, and Redis receives them again', async () => {
    const server = await startRedisServer();
    onTestFinished(() => server.stop());
    const store = uniqueRedisStore(server.url);
    const gateway = await start({ store, settings: { log: { level: 'info' } } });
    await put(gateway, { 'account-read': 5000 });
    await server.kill();
    expect(await limitOf(gateway)).toBe('5000');
    const response = await put(gateway, { 'account-read': 6000 });
    expect([response.status, await response.text()]).toEqual([
      503,
      expect.stringContaining('Nothing was changed: Redis does not take the command'),
    ]);
    expect(await limitOf(gateway)).toBe('5000');
    await server.start();
    await expect
      .poll(
        async () => {
          const client = new Redis(server.url);
          const held = await client.zcard(`${store.keyPrefix}:1:limits:record`).catch(() => 0);
          client.disconnect();
          return held;
        },
        { timeout: 30_000, interval: 100 },
      )
      .toBe(1);
    const messages = () => gateway.lines.map((line) => String(JSON.parse(line).msg));
    await expect.poll(messages).toContain('live limits reach this replica again');
    expect(messages().filter((message) => /^live limits (?:do not )?reach/.test(message))).toEqual([
      'live limits do not reach this replica until Redis is back',
      'live limits reach this replica again',
    ]);
    expect(await limitOf(await start({ store }))).toBe('5000');
  });
});

describe('weir limit', () => {
  it('sets, lists and removes', async () => {
    const gateway = await start();
    const options = { url: gateway.adminUrl, ...WHY };
    const run = runHere;
    const set = await run(() =>
      setLimit('acct_1', ['account-read=5000', 'account-write=300'], { ...options, for: '2h' }),
    );
    expect(set.stdout).toMatch(
      /^Set: account-read of acct_1: 5000 points until \S+Z, by alice: launch\nSet: account-write of acct_1: 300 points/,
    );
    await run(() => setLimit('org_1', ['organization-read=7000'], options));
    const listed = await run(() => listLimits({ url: gateway.adminUrl, json: true }));
    expect(JSON.parse(listed.stdout)).toEqual(await list(gateway));
    expect((await list(gateway)).map(({ bucket }) => bucket)).toEqual([
      'organization-read',
      'account-read',
      'account-write',
    ]);
    const one = await run(() => unsetLimit('acct_1', 'account-write', options));
    expect(one.stdout).toBe('Removed: account-write of acct_1. The files apply again.\n');
    expect(await limitOf(gateway)).toBe('5000');
    for (const id of ['acct_1', 'org_1']) await run(() => unsetLimit(id, undefined, options));
    expect((await run(() => listLimits({ url: gateway.adminUrl }))).stdout).toBe(
      'There are no live limits, and nothing is blocked.\n',
    );
  });

  it('refuses an owner that nobody has, unless it is forced', async () => {
    const gateway = await start();
    const set = async (id: string, bucket: string, force = false) => {
      const options = { url: gateway.adminUrl, ...WHY, force };
      const { stdout, failure } = await runHere(() => setLimit(id, [`${bucket}=900`], options));
      return failure ?? stdout;
    };
    expect(await set('acct_11', 'account-read')).toMatch(
      /404: There is no account acct_11\. Did you mean acct_1\b/,
    );
    expect(await set('nobody', 'organization-read')).toMatch(/404: There is no organization nobody\.$/);
    expect(await set('nobody', 'organization-read', true)).toMatch(/^Set: organization-read of nobody/);
    for (const [id, bucket] of [
      ['acct_1', 'account-read'],
      ['org_1', 'organization-read'],
      ['192.0.2.1', 'address-read'],
    ] as const)
      expect(await set(id, bucket), id).toMatch(/^Set: /);
  });

  it('says what is wrong', async () => {
    const gateway = await start();
    const options = { url: gateway.adminUrl, ...WHY };
    const failure = async (buckets: string[], id = 'acct_1') =>
      (await runHere(() => setLimit(id, buckets, options))).failure;
    expect(await failure(['account-read'])).toMatch(/give a bucket and its points/);
    expect(await failure(['account-read=5', 'account-read=6'])).toMatch(/account-read is set twice/);
    expect(await failure(['account-read=3'])).toMatch(/400: .*below the cost 10/);
    expect(await failure(['acount-read=30'])).toMatch(/did you mean "account-read"/);
    expect(await failure(['address-read=30'], '10.0.0.0/8')).toMatch(
      /400: 10\.0\.0\.0\/8 is a range of addresses\. .* only a block may name a range\./,
    );
    expect(await failure(['address-read=30'], '10.0.0.300')).toMatch(
      /400: 10\.0\.0\.300 is not an IP address\./,
    );
    const { failure: none } = await runHere(() => unsetLimit('acct_1', undefined, options));
    expect(none).toBe('acct_1 has no such live limit: weir limit list shows all.');
  });
});
