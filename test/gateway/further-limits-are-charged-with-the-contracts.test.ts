import { describe, expect, it, onTestFinished } from 'vitest';
import { remainingOf, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { STORES } from '../fixtures/stores.ts';

type Options = Parameters<typeof startGateway>[0];

async function start(options: Options): Promise<TestGateway> {
  const gateway = await startGateway({ ...options, settings: { ...SETTINGS, ...options?.settings } });
  onTestFinished(() => gateway.close());
  return gateway;
}

const SETTINGS = {
  operations: {
    list: [
      { method: 'POST', path: '/login', id: 'login', public: true },
      { method: 'GET', path: '/status', id: 'status', public: true },
      { method: 'GET', path: '/v3/search/payees', id: 'searchPayees', tags: ['search'] },
      { method: 'GET', path: '/v3/things', id: 'listThings' },
      { method: 'POST', path: '/v3/search/{what}', id: 'search', cost: 3 },
      { method: 'GET', path: '/v3/factors', id: 'factors', personOnly: true },
    ],
  },
};

/** Sends requests one after the other. @returns their statuses */
async function statusesOf(count: number, send: () => Promise<Response>): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let sent = 0; sent < count; sent++) statuses.push((await send()).status);
  return statuses;
}

describe.each(STORES)('with the $kind store', ({ store }) => {
  it('a limit has a window of its own, in the headers and in the 429', async () => {
    const gateway = await start({
      store: store(),
      limits: { limits: { 'account-hour': { per: 'account', points: 4, window: '1h' } } },
    });
    const first = await gateway.send('GET', '/v3/things');
    expect(first.headers.get('RateLimit-Policy')).toBe(
      '"account-read";q=20;w=60, "account-write";q=20;w=60, "organization-read";q=30;w=60, "organization-write";q=30;w=60, "account-hour";q=4;w=3600',
    );
    expect(first.headers.get('RateLimit')).toBe(
      '"account-read";r=19;t=60, "organization-read";r=29;t=60, "account-hour";r=3;t=3600',
    );
    expect(await statusesOf(3, () => gateway.send('POST', '/v3/things'))).toEqual([200, 200, 200]);
    const refused = await gateway.send('GET', '/v3/things');
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(3_500);
    expect(await refused.json()).toMatchObject({
      detail: expect.stringMatching(
        /^Account acct_1 has used its 4 points per hour; try again in \d+ min\.$/,
      ),
      extensions: { bucket: 'account-hour', limit: 4, windowSeconds: 3_600, costPoints: 1 },
    });
    // The refusal has spent nothing of the other buckets.
    expect(remainingOf(refused)).toEqual({ 'account-read': 19, 'organization-read': 29, 'account-hour': 0 });
    // Another Account of the Organization is not affected.
    expect((await gateway.send('GET', '/v3/things', { token: 'other' })).status).toBe(200);
  });

  it('a limit counts the operations that it selects: by id, path, tag and kind', async () => {
    const gateway = await start({
      store: store(),
      limits: {
        limits: {
          tagged: { per: 'account', requests: 2, window: '1m', tags: ['search'] },
          paths: { per: 'account', requests: 2, window: '1m', operations: ['POST /v3/search/**'] },
          reads: { per: 'principal', requests: 5, window: '1m', kind: 'read' },
        },
      },
    });
    const named = async (method: string, path: string) =>
      Object.keys(remainingOf(await gateway.send(method, path)) ?? {}).slice(2);
    expect(await named('GET', '/v3/things')).toEqual(['reads']);
    expect(await named('GET', '/v3/search/payees')).toEqual(['tagged', 'reads']);
    expect(await named('POST', '/v3/search/x')).toEqual(['paths']);
    // Requests count 1, whatever they cost.
    expect(await statusesOf(2, () => gateway.send('POST', '/v3/search/y'))).toEqual([200, 429]);
    expect(await statusesOf(2, () => gateway.send('GET', '/v3/search/payees'))).toEqual([200, 429]);
    expect(await statusesOf(3, () => gateway.send('GET', '/v3/things'))).toEqual([200, 200, 429]);
  });

  it('a login is limited by address, apart from other public operations', async () => {
    const gateway = await start({
      store: store(),
      limits: { limits: { logins: { per: 'address', points: 2, window: '5m', operations: ['login'] } } },
    });
    const login = () => gateway.send('POST', '/login', { token: null });
    expect(await statusesOf(3, login)).toEqual([200, 200, 429]);
    expect(await (await login()).json()).toMatchObject({
      extensions: { bucket: 'logins', limit: 2, windowSeconds: 300 },
    });
    const other = await gateway.send('GET', '/status', { token: null });
    expect(other.headers.get('RateLimit-Policy')).toBe('"address-read";q=10;w=60, "address-write";q=10;w=60');
  });

  it('a principal has a bucket of its own, on Person-only operations as well', async () => {
    const gateway = await start({
      store: store(),
      limits: { limits: { 'key-hour': { per: 'principal', requests: 2, window: '1h' } } },
    });
    const send = (token: string, path: string) => () => gateway.send('GET', path, { token });
    expect(await statusesOf(1, send('person', '/v3/factors'))).toEqual([200]);
    expect(await statusesOf(2, send('person', '/v3/things'))).toEqual([200, 429]);
    expect(await statusesOf(3, send('service', '/v3/things'))).toEqual([200, 200, 429]);
  });

  it('a limit per service account counts no Person', async () => {
    const gateway = await start({
      store: store(),
      limits: {
        limits: { machines: { per: 'service', requests: 2, window: '1h' } },
        principals: { svc_3: { machines: 3 } },
      },
    });
    const send = (token: string) => () => gateway.send('GET', '/v3/things', { token });
    expect(await statusesOf(3, send('person'))).toEqual([200, 200, 200]);
    expect(await statusesOf(3, send('service'))).toEqual([200, 200, 429]);
    expect(await statusesOf(4, send('lonely'))).toEqual([200, 200, 200, 429]);
    expect(await (await send('lonely')()).json()).toMatchObject({
      detail: expect.stringContaining('Service account svc_3 has used its 3 requests per hour'),
    });
  });

  it('a shadow limit refuses nothing, and none has no bucket', async () => {
    const gateway = await start({
      store: store(),
      settings: { log: { level: 'info' } },
      limits: {
        limits: {
          tried: { per: 'account', requests: 1, window: '1h', shadow: true },
          off: { per: 'account', requests: 'none', window: '1h' },
        },
        accounts: { acct_3: { off: 1 } },
      },
    });
    expect(await statusesOf(2, () => gateway.send('GET', '/v3/things'))).toEqual([200, 200]);
    expect(gateway.lines.some((line) => line.includes('"shadowDenied":["tried"]'))).toBe(true);
    const lonely = () => gateway.send('GET', '/v3/things', { token: 'lonely' });
    expect(await statusesOf(2, lonely)).toEqual([200, 429]);
  });

  it('more than eight limits are named by those that are nearest to their limit', async () => {
    const rows = Array.from({ length: 9 }, (_, n) => [
      `row-${n}`,
      { per: 'account', points: n === 7 ? 4 : 100, window: `${n + 1}m` },
    ]);
    const gateway = await start({ store: store(), limits: { limits: Object.fromEntries(rows) } });
    const response = await gateway.send('GET', '/v3/things');
    const policy = response.headers.get('RateLimit-Policy') ?? '';
    expect(policy.split(', ')).toHaveLength(8);
    expect(policy).toContain('"organization-write"');
    expect(policy).toContain('"row-7";q=4;w=480');
    const used = Object.keys(remainingOf(response) ?? {});
    expect(used).toHaveLength(8);
    expect(used).toContain('row-7');
    expect(used).toContain('account-read');
  });

  it('a 429 names the limit that refuses, though more than eight others have a smaller share left', async () => {
    const rows = Array.from({ length: 9 }, (_, n) => [
      `row-${n}`,
      { per: 'account', requests: 25, window: '1m' },
    ]);
    const searches = { per: 'account', points: 20, window: '1h', operations: ['search'] };
    const gateway = await start({
      store: store(),
      limits: {
        defaults: { 'account-write': 100, 'organization-write': 100 },
        limits: { ...Object.fromEntries(rows), searches },
      },
    });
    const search = () => gateway.send('POST', '/v3/search/payees');
    await statusesOf(18, () => gateway.send('GET', '/v3/things'));
    expect(await statusesOf(6, search)).not.toContain(429);
    const refused = await search();
    expect(await refused.json()).toMatchObject({ extensions: { bucket: 'searches' } });
    expect(remainingOf(refused)).toMatchObject({ searches: 2, 'row-0': 1 });
    expect(refused.headers.get('RateLimit-Policy')).toContain('"searches";q=20;w=3600');
  });
});
