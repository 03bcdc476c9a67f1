import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { remainingOf, type SendOptions, startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { STORES } from '../../fixtures/stores.ts';
import { startUpstream } from '../../fixtures/upstream.ts';

const LIST = [
  { method: 'GET', path: '/open', cost: 2, public: true },
  { method: 'POST', path: '/open', public: true },
  { method: 'GET', path: '/healthz', cost: 0, public: true },
  { method: 'GET', path: '/closed' },
];

type Options = NonNullable<Parameters<typeof startGateway>[0]>;

async function start({ settings, ...options }: Options = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    settings: {
      operations: { openapi: 'openapi.yaml', list: LIST },
      listen: { trustedProxies: ['127.0.0.1/32'] },
      ...settings,
    },
    ...options,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

const ANONYMOUS: SendOptions = { token: null };

const from = (address: string, more: SendOptions = ANONYMOUS): SendOptions => ({
  ...more,
  headers: { ...more.headers, 'X-Forwarded-For': address },
});

describe.each(STORES)('with the $kind store', ({ store }) => {
  it("a request without a token is charged to its client's address", async () => {
    const gateway = await start({ store: store() });
    const read = await gateway.send('GET', '/open', ANONYMOUS);
    expect(read.status).toBe(200);
    expect(read.headers.get('RateLimit-Policy')).toBe('"address-read";q=10;w=60, "address-write";q=10;w=60');
    expect(remainingOf(read)).toEqual({ 'address-read': 8 });
    expect(remainingOf(await gateway.send('HEAD', '/open', ANONYMOUS))).toEqual({ 'address-read': 6 });
    expect(remainingOf(await gateway.send('POST', '/open', ANONYMOUS))).toEqual({ 'address-write': 9 });
  });

  it('credentials of any kind change nothing, and no Account is charged', async () => {
    const gateway = await start({ store: store() });
    const credentials: SendOptions[] = [
      { token: 'made-up' },
      { token: 'service' },
      { token: 'service', account: 'acct_of_somebody_else' },
      { token: null, headers: { Authorization: 'Basic eA==' } },
      { token: null, headers: { Authorization: 'nonsense' } },
    ];
    for (const [index, one] of credentials.entries()) {
      const response = await gateway.send('GET', '/open', one);
      expect([response.status, remainingOf(response)], JSON.stringify(one)).toEqual([
        200,
        { 'address-read': 8 - 2 * index },
      ]);
    }
    for (const { headers } of gateway.upstream.seen) {
      expect(headers.authorization).toBeDefined();
      expect(Object.keys(headers).filter((name) => /account|principal|organization/.test(name))).toEqual([]);
    }
    expect(remainingOf(await gateway.send('GET', '/closed'))).toMatchObject({ 'account-read': 19 });
  });

  it('a full bucket refuses with the 429 of the contract, until then and for this address only', async () => {
    const gateway = await start({ store: store() });
    const client = from('203.0.113.7');
    for (let round = 0; round < 5; round++)
      expect((await gateway.send('GET', '/open', client)).status).toBe(200);
    const refused = await gateway.send('GET', '/open', client);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThanOrEqual(1);
    expect(remainingOf(refused)).toEqual({ 'address-read': 0 });
    expect(await refused.json()).toMatchObject({
      code: 'RateLimitExceeded',
      extensions: { bucket: 'address-read', limit: 10, windowSeconds: 60, costPoints: 2 },
    });
    expect(gateway.upstream.seen).toHaveLength(5);
    for (const same of ['::ffff:203.0.113.7', '198.51.100.1, 203.0.113.7', '203.0.113.7, 127.0.0.1']) {
      expect((await gateway.send('GET', '/open', from(same))).status, same).toBe(429);
    }
    const others = [from('203.0.113.8'), ANONYMOUS, from('203.0.113.7, 203.0.113.9')];
    for (const other of others) expect((await gateway.send('GET', '/open', other)).status).toBe(200);
    expect((await gateway.send('POST', '/open', client)).status).toBe(200);
    // With a token, an operation that needs a caller is served.
    expect((await gateway.send('GET', '/closed', from('203.0.113.7', {}))).status).toBe(200);
  });

  it('the addresses of an IPv6 /64 network share a bucket', async () => {
    const gateway = await start({ store: store() });
    const left = async (address: string) =>
      remainingOf(await gateway.send('GET', '/open', from(address)))?.['address-read'];
    expect(await left('2001:db8:0:1::1')).toBe(8);
    expect(await left('2001:DB8::1:ffff:0:0:2')).toBe(6);
    expect(await left('2001:db8:0:2::1')).toBe(8);
  });

  it('a free operation is not charged, and served when the bucket is full', async () => {
    const gateway = await start({ store: store(), limits: { defaults: { 'address-read': 2 } } });
    expect((await gateway.send('GET', '/open', ANONYMOUS)).status).toBe(200);
    expect((await gateway.send('GET', '/open', ANONYMOUS)).status).toBe(429);
    for (const token of [null, 'made-up']) {
      const healthy = await gateway.send('GET', '/healthz', { token });
      expect(healthy.status).toBe(200);
      for (const name of ['RateLimit', 'RateLimit-Policy', 'Service-RateLimit-Mode']) {
        expect(healthy.headers.get(name), name).toBeNull();
      }
    }
  });
});

it('operations that are not public need a token as before', async () => {
  const gateway = await start();
  for (const path of ['/closed', '/v3/things', '/open/more', '/elsewhere']) {
    expect((await gateway.send('GET', path, ANONYMOUS)).status, path).toBe(401);
  }
  expect((await gateway.send('PUT', '/open', ANONYMOUS)).status).toBe(401);
  expect((await gateway.send('POST', '/healthz', ANONYMOUS)).status).toBe(401);
});

it('an address that nobody vouches for is not believed', async () => {
  const gateway = await start({
    settings: { operations: { openapi: 'openapi.yaml', list: LIST }, listen: {} },
  });
  await gateway.send('GET', '/open', from('203.0.113.7'));
  expect(remainingOf(await gateway.send('GET', '/open', from('203.0.113.8')))).toEqual({ 'address-read': 6 });
});

it('an override raises the limit of one address, and a live limit the limit of another', async () => {
  const gateway = await start({
    limits: { addresses: { '203.0.113.7': { 'address-read': 50 } } },
  });
  const policy = async (address: string) =>
    (await gateway.send('GET', '/open', from(address))).headers.get('RateLimit-Policy');
  expect(await policy('203.0.113.7')).toBe('"address-read";q=50;w=60, "address-write";q=10;w=60');
  const set = await fetch(`${gateway.adminUrl}/limits/live/addresses/2001:db8::99`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ 'address-read': 40, why: 'test' }),
  });
  expect(await set.json()).toMatchObject([{ scope: 'address', id: '2001:db8::/64', limit: 40 }]);
  expect(await policy('2001:db8::1')).toBe('"address-read";q=40;w=60, "address-write";q=10;w=60');
});

it('usage, metrics and 429s name the bucket; no metric has an address', async () => {
  const gateway = await start({ limits: { defaults: { 'address-read': 2 } } });
  await gateway.send('GET', '/open', from('2001:db8::1'));
  await gateway.send('GET', '/open', from('2001:db8::2'));
  await gateway.send('GET', '/healthz', from('2001:db8::2'));
  const usage = await fetch(`${gateway.adminUrl}/usage/addresses/${encodeURIComponent('2001:db8::3')}`);
  expect(await usage.json()).toMatchObject({
    scope: 'address',
    id: '2001:db8::/64',
    buckets: [
      { bucket: 'address-read', limit: 2, used: 2, remaining: 0 },
      { bucket: 'address-write', limit: 50, used: 0 },
    ],
  });
  expect((await fetch(`${gateway.adminUrl}/usage/addresses/nonsense`)).status).toBe(400);
  const counted = [
    'bucket="address-read",outcome="admitted"',
    'bucket="address-read",outcome="denied"',
    'outcome="free"',
  ];
  const countedIn = (metrics: string) => counted.filter((labels) => metrics.includes(`${labels}} 1`));
  await expect.poll(async () => countedIn(await gateway.metrics())).toEqual(counted);
  expect(await gateway.metrics()).not.toContain('2001:');
});

it('without its store, a public operation is served degraded', async () => {
  const gateway = await start({ store: { kind: 'redis', url: 'redis://127.0.0.1:1' } });
  const response = await gateway.send('GET', '/open', ANONYMOUS);
  expect(response.status).toBe(200);
  expect(response.headers.get('Service-RateLimit-Mode')).toBe('degraded');
  expect(response.headers.get('RateLimit')).toBeNull();
});

it("public operations use a part of the upstream's connections; beyond it they wait, or are refused uncharged", async () => {
  const held: ServerResponse[] = [];
  const upstream = await startUpstream((request, response) => {
    if (request.headers['x-hold'] === undefined) response.end();
    else held.push(response);
  });
  const gateway = await start({
    upstream,
    settings: {
      operations: { openapi: 'openapi.yaml', list: LIST },
      upstream: {
        url: upstream.url,
        connections: 4,
        maxWaiting: 1,
        publicPercent: 50,
        queueTimeoutMs: 60_000,
      },
    },
  });
  const holding = [1, 2].map(() => gateway.send('GET', '/open', { token: null, headers: { 'X-Hold': '1' } }));
  await expect.poll(() => held.length).toBe(2);
  holding.push(gateway.send('GET', '/open', ANONYMOUS));
  await expect
    .poll(async () => (await gateway.metrics()).includes('weir_upstream_queued{upstream="/"} 1'))
    .toBe(true);
  const refused = await gateway.send('GET', '/open', ANONYMOUS);
  expect([refused.status, remainingOf(refused)]).toEqual([503, null]);
  expect((await gateway.send('GET', '/closed')).status).toBe(200);
  for (const response of held) {
    response.end();
    await once(response, 'close');
  }
  await Promise.all(holding);
  // The refused request spent nothing.
  await expect
    .poll(async () => remainingOf(await gateway.send('GET', '/open', ANONYMOUS)))
    .toEqual({ 'address-read': 2 });
});
