import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { load } from 'js-yaml';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { OwnUsageAnswer } from '../../src/gateway/usage/own-usage-answer.ts';
import { readConfiguration } from '../../src/process/configuration.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { remainingOf, type SendOptions, startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { linesOf } from '../fixtures/log-lines.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';

const PATH = '/.well-known/rate-limits';
const USAGE = { path: PATH, requestsPerMinute: 10_000 };

const document = load(readFileSync('docs/rate-limits.openapi.yaml', 'utf8')) as object;
const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(document, 'rate-limits');

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway({ ...options, settings: { usage: USAGE, ...options.settings } });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The answer, which has the form that the document describes. */
async function ownUsage(gateway: TestGateway, sent: SendOptions = {}): Promise<OwnUsageAnswer> {
  const response = await gateway.send('GET', PATH, sent);
  expect(response.status).toBe(200);
  const answer = (await response.json()) as OwnUsageAnswer;
  const isValid = ajv.validate('rate-limits#/components/schemas/RateLimits', answer);
  expect(isValid ? true : ajv.errorsText()).toBe(true);
  return answer;
}

function countsIn({
  buckets,
}: OwnUsageAnswer): Record<string, readonly [used: number | null, left: number | null]> {
  return Object.fromEntries(buckets.map(({ bucket, used, remaining }) => [bucket, [used, remaining]]));
}

describe.each([
  ['in memory', () => ({})],
  ['in Redis', uniqueRedisStore],
])('counted %s, the answer', (_name, store) => {
  it('has what the RateLimit header says, and costs nothing', async () => {
    const gateway = await start({ store: store() });
    await gateway.send('GET', '/v3/reports');
    for (let round = 0; round < 3; round++) await ownUsage(gateway);
    const answer = await ownUsage(gateway);
    expect(answer).toMatchObject({
      scope: 'account',
      id: 'acct_1',
      organization: 'org_1',
      plan: null,
      degraded: false,
    });
    expect(countsIn(answer)).toEqual({
      'account-read': [10, 10],
      'account-write': [0, 20],
      'organization-read': [10, 20],
      'organization-write': [0, 30],
    });
    const next = await gateway.send('GET', '/v3/things');
    expect(remainingOf(next)).toEqual({ 'account-read': 9, 'organization-read': 19 });
    expect(gateway.upstream.seen).toHaveLength(2);
    const [read] = (await ownUsage(gateway)).buckets;
    expect(read).toMatchObject({ windowSeconds: 60, counts: 'points', kind: 'read', source: 'default' });
    expect(read?.resetAfterSeconds).toBeGreaterThan(0);
  });

  it('of a Person has its own bucket as well, wherever it acts', async () => {
    const gateway = await start({ store: store() });
    await gateway.send('GET', '/v3/mfa-factors', { token: 'person' });
    await gateway.send('GET', '/v3/things', { token: 'person', account: 'acct_2' });
    const home = await ownUsage(gateway, { token: 'person' });
    expect([home.id, countsIn(home)]).toMatchObject([
      'acct_1',
      { 'account-read': [0, 20], 'organization-read': [1, 29], 'person-read': [1, 9] },
    ]);
    const abroad = await ownUsage(gateway, { token: 'person', account: 'acct_2' });
    expect([abroad.id, countsIn(abroad)]).toMatchObject([
      'acct_2',
      { 'account-read': [1, 19], 'organization-read': [1, 29], 'person-read': [1, 9] },
    ]);
  });

  it('has further limits with what they count, and the plan, but no shadow limit', async () => {
    const gateway = await start({
      store: store(),
      limits: {
        plans: { pro: { 'account-read': 40 } },
        limits: {
          hourly: { per: 'account', requests: 100, window: '1h', operations: ['listThings'] },
          mine: { per: 'principal', points: 50, window: '1m' },
          tried: { per: 'account', points: 10, window: '1m', shadow: true },
        },
        accounts: { acct_1: { plan: 'pro', 'account-write': { limit: 7, shadow: true } } },
      },
    });
    await gateway.send('GET', '/v3/things');
    await gateway.send('GET', '/v3/reports');
    const answer = await ownUsage(gateway);
    expect(answer.plan).toBe('pro');
    const { hourly, mine, ...others } = countsIn(answer);
    expect([hourly, mine]).toEqual([
      [1, 99],
      [11, 39],
    ]);
    expect(Object.keys(others)).toEqual([
      'account-read',
      'account-write',
      'organization-read',
      'organization-write',
    ]);
    expect(answer.buckets.find(({ bucket }) => bucket === 'hourly')).toMatchObject({
      counts: 'requests',
      windowSeconds: 3_600,
      operations: ['listThings'],
      limit: 100,
    });
    expect(answer.buckets[0]).toMatchObject({ limit: 40, source: 'plan' });
    expect(answer.buckets[1]).toMatchObject({ limit: 20, source: 'default' });
  });
});

describe('a request for the own limits', () => {
  it('needs a caller, and an Account that it may act for', async () => {
    const gateway = await start();
    const statusOf = async (sent: SendOptions) => {
      const response = await gateway.send('GET', PATH, sent);
      expect(response.headers.get('Content-Type')).toBe('application/problem+json');
      return [response.status, ((await response.json()) as { code: string }).code];
    };
    expect(await statusOf({ token: null })).toEqual([401, 'Unauthenticated']);
    expect(await statusOf({ token: 'nobody' })).toEqual([401, 'Unauthenticated']);
    expect(await statusOf({ account: 'acct_2' })).toEqual([403, 'Forbidden']);
    expect(await statusOf({ token: 'organization' })).toEqual([403, 'Forbidden']);
    expect(await statusOf({ token: 'organization', account: 'acct_4' })).toEqual([403, 'Forbidden']);
    expect((await ownUsage(gateway, { token: 'organization', account: 'acct_2' })).id).toBe('acct_2');
  });

  it('of an Account without an Organization names none', async () => {
    const answer = await ownUsage(await start(), { token: 'lonely' });
    expect([answer.id, answer.organization]).toEqual(['acct_3', null]);
  });

  it('is a GET, whose head a HEAD gets', async () => {
    const gateway = await start();
    const [get, head, options, post] = await Promise.all(
      ['GET', 'HEAD', 'OPTIONS', 'POST'].map((method) =>
        gateway.send(method, PATH, method === 'POST' ? { body: '{}' } : {}),
      ),
    );
    expect([get?.status, head?.status, options?.status, post?.status]).toEqual([200, 200, 204, 405]);
    expect(head?.headers.get('Content-Length')).toBe(get?.headers.get('Content-Length'));
    expect(await head?.text()).toBe('');
    expect(get?.headers.get('Cache-Control')).toBe('no-store');
    expect([options, post].map((one) => one?.headers.get('Allow'))).toEqual([
      'GET, HEAD, OPTIONS',
      'GET, HEAD, OPTIONS',
    ]);
    expect(gateway.upstream.seen).toEqual([]);
  });

  it.each(['answer', 'forward'])(
    'can come from a page of another origin, with preflights: %s',
    async (preflight) => {
      const gateway = await start({
        settings: { cors: { origins: ['https://app.example.com'], preflight } },
      });
      const Origin = 'https://app.example.com';
      const asked = {
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'authorization',
      };
      const allowed = await gateway.send('OPTIONS', PATH, { token: null, headers: { Origin, ...asked } });
      const answer = await gateway.send('GET', PATH, { headers: { Origin } });
      const stranger = await gateway.send('GET', PATH, { headers: { Origin: 'https://evil.example.com' } });
      expect([allowed.status, answer.status, stranger.status]).toEqual([204, 200, 200]);
      expect(allowed.headers.get('Access-Control-Allow-Headers')).toBe('authorization');
      const origins = [allowed, answer, stranger].map(({ headers }) =>
        headers.get('Access-Control-Allow-Origin'),
      );
      expect(origins).toEqual([Origin, Origin, null]);
      expect(gateway.upstream.seen).toEqual([]);
    },
  );

  it('is limited by address, also for callers without a token', async () => {
    const listen = { trustedProxies: ['127.0.0.0/8'] };
    const gateway = await start({ settings: { listen, usage: { path: PATH, requestsPerMinute: 3 } } });
    const from = (address: string, token: string | null) =>
      gateway.send('GET', PATH, { token, headers: { 'X-Forwarded-For': address } });
    const tried = [await from('203.0.113.7', null), await from('203.0.113.7', null)];
    tried.push(await from('203.0.113.7', 'service'), await from('203.0.113.7', 'service'));
    expect(tried.map(({ status }) => status)).toEqual([401, 401, 200, 429]);
    const refused = tried[3];
    expect(Number(refused?.headers.get('Retry-After'))).toBeGreaterThan(0);
    expect(await refused?.json()).toMatchObject({
      code: 'RateLimitExceeded',
      detail: expect.stringMatching(/^Address 203\.0\.113\.7 has used its 3 requests per minute for usage;/),
      extensions: { bucket: 'usage', limit: 3, windowSeconds: 60 },
    });
    expect((await from('203.0.113.8', 'service')).status).toBe(200);
    expect((await gateway.send('GET', '/v3/things')).status).toBe(200);
  });

  it('makes no notification, however often strangers ask', async () => {
    const gateway = await start({
      settings: {
        usage: { path: PATH, requestsPerMinute: 1 },
        notifications: { log: true },
        log: { level: 'info' },
      },
    });
    const statuses: number[] = [];
    for (let asked = 0; asked < 3; asked++)
      statuses.push((await gateway.send('GET', PATH, { token: null })).status);
    expect(statuses).toEqual([401, 429, 429]);
    for (let spent = 0; spent < 16; spent++) await gateway.send('GET', '/v3/things');
    await expect
      .poll(() => linesOf(gateway, 'limit.reached'))
      .toMatchObject([{ bucket: 'account-read', percent: 80 }]);
  });

  it('names its violated policy with the fields of the draft', async () => {
    const limits = { file: 'limits.yaml', fields: 'draft' };
    const gateway = await start({ settings: { limits, usage: { path: PATH, requestsPerMinute: 1 } } });
    await gateway.send('GET', PATH);
    const refused = await gateway.send('GET', PATH);
    expect(refused.headers.get('RateLimit-Policy')).toContain('"usage";q=1');
    expect(await refused.json()).toMatchObject({ extensions: { 'violated-policies': ['usage'] } });
  });

  it('is refused to blocked callers', async () => {
    const gateway = await start();
    const block = (owner: string) =>
      fetch(`${gateway.adminUrl}/blocks/${owner}`, {
        method: 'PUT',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ for: '1h', why: 'leak' }),
      });
    await block('accounts/acct_1');
    const refused = await gateway.send('GET', PATH);
    expect([refused.status, await refused.json()]).toMatchObject([
      429,
      { extensions: { bucket: 'blocked' } },
    ]);
    expect((await gateway.send('GET', PATH, { token: 'other' })).status).toBe(200);
    await block('addresses/127.0.0.1');
    expect((await gateway.send('GET', PATH, { token: 'other' })).status).toBe(429);
  });

  it('is forwarded and charged as any other where no path is set', async () => {
    const gateway = await start({ settings: { usage: {} } });
    const answer = await gateway.send('GET', PATH);
    expect(remainingOf(answer)).toMatchObject({ 'account-read': 19 });
    expect(gateway.upstream.seen).toHaveLength(1);
  });

  it('is counted as free, and has one line in the log', async () => {
    const gateway = await start({ settings: { log: { level: 'info' } } });
    await ownUsage(gateway);
    await expect
      .poll(() => gateway.metrics())
      .toContain('weir_requests_total{kind="read",bucket="none",outcome="free"} 1');
    const lines = gateway.lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    expect(lines).toMatchObject([{ status: 200, operation: 'usage', account: 'acct_1', path: PATH }]);
  });
});

it('without the store the counts are unknown, and the header says why', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis.stop());
  const gateway = await start({ store: { kind: 'redis', url: redis.url } });
  await gateway.send('GET', '/v3/things');
  expect((await ownUsage(gateway)).degraded).toBe(false);
  await redis.kill();
  await expect.poll(async () => (await ownUsage(gateway)).degraded, { timeout: 30_000 }).toBe(true);
  const response = await gateway.send('GET', PATH);
  expect(response.headers.get('Service-RateLimit-Mode')).toBe('degraded');
  expect(countsIn((await response.json()) as OwnUsageAnswer)['account-read']).toEqual([null, null]);
  await redis.start();
  await expect.poll(async () => (await ownUsage(gateway)).degraded, { timeout: 30_000 }).toBe(false);
});

it('the last minute is the sum over the gateways, and says over how many', async () => {
  const store = uniqueRedisStore();
  const [one, other] = [await start({ store }), await start({ store })];
  for (const gateway of [one, one, other]) await gateway.send('GET', '/v3/things');
  const shown = async () => {
    const { replicas, ofReplicas, recent, operations } = await ownUsage(one);
    return [replicas, ofReplicas, recent['1m'], operations];
  };
  const counts = { points: 3, requests: 3, refused: 0 };
  await expect
    .poll(shown, { timeout: 30_000 })
    .toEqual([2, 2, counts, [{ operation: 'listThings', ...counts }]]);
});

describe('an operation with the same path', () => {
  const settings = { usage: { path: '/v3/Things' } };

  it('keeps the configuration from being used', async () => {
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', settings });
    await expect(readConfiguration(file, {})).rejects.toThrow(
      /openapi\.yaml:\d+: .*GET \/v3\/things has the path of the setting usage\.path/,
    );
  });

  it('is not taken over from a changed document either', async () => {
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', settings: { usage: USAGE } });
    await readConfiguration(file, {});
    const openapi = file.replace('weir.yaml', 'openapi.yaml');
    const text = await readFile(openapi, 'utf8');
    await writeFile(openapi, text.replace('"/v3/things"', `"${PATH}"`));
    await expect(readConfiguration(file, {})).rejects.toThrow('usage.path');
  });

  it.each(['/', '/a/../b', '/./a', '/a//b', '/a/', 'a', '/a?b', '/%61', '/a b'])(
    '%j is no path',
    async (path) => {
      const file = await writeConfiguration({
        upstreamUrl: 'http://127.0.0.1:1',
        settings: { usage: { path } },
      });
      await expect(readConfiguration(file, {})).rejects.toThrow('usage.path: must be a path such as');
    },
  );
});
