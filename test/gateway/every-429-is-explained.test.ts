import { hostname } from 'node:os';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import type { FindResult } from '../../src/admin/find/finder.ts';
import type { ShownRefusal } from '../../src/admin/why/shown-refusal.ts';
import type { WhyAnswer } from '../../src/admin/why/why-route.ts';
import { why } from '../../src/commands/why.ts';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { shownTime } from '../../src/domain/shown.ts';
import { PLENTY } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { runHere } from '../fixtures/run-here.ts';
import { startSettling } from '../fixtures/settling.ts';

/** To explain a 429, a replica asks all others. */
const SOON = { timeout: 20_000, interval: 200 };

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const asked = ({ adminUrl }: TestGateway, id: string) => fetch(`${adminUrl}/refusals/${id}`);

const refusalsOf = async (gateway: TestGateway, id: string): Promise<readonly ShownRefusal[]> => {
  const response = await asked(gateway, id);
  return response.status === 200 ? ((await response.json()) as WhyAnswer).refusals : [];
};

const refuse = async (gateway: TestGateway, id: string, path = '/v3/things', options = {}) => {
  const headers = { 'X-Request-Id': id };
  expect((await gateway.send('GET', path, { headers, ...options })).status).toBe(429);
};

it('a 429 is explained at every replica, by the sums of all replicas, with the limit and its place', async () => {
  const store = uniqueRedisStore();
  const limits = { accounts: { acct_1: { 'account-read': 25 } } };
  const gateways = [await start({ store, limits }), await start({ store, limits })] as const;
  const [first, second] = gateways;
  await first.send('GET', '/v3/reports');
  for (let index = 0; index < 3; index++) await second.send('GET', '/v3/things');
  for (let index = 0; index < 2; index++) await second.send('GET', '/v3/things/th_a');
  await second.send('GET', '/v3/things', { token: 'person' });
  await refuse(first, 'refused-1', '/v3/reports');
  for (const gateway of gateways) {
    await expect
      .poll(async () => (await refusalsOf(gateway, 'refused-1')).map(({ unknown }) => unknown), SOON)
      .toEqual([0]);
    const [refusal] = await refusalsOf(gateway, 'refused-1');
    expect(refusal).toMatchObject({
      operation: 'reportRead',
      cost: 10,
      principal: 'svc_1',
      account: 'acct_1',
      used: 16,
      limit: { bucket: 'account-read', scope: 'account', owner: 'acct_1', limit: 25, source: 'override' },
      unknownBefore: null,
    });
    expect(refusal?.limit.writtenAt).toMatch(/limits\.yaml:\d+$/);
    expect(refusal?.filledBy.toSorted((a, b) => b.points - a.points)).toEqual([
      { operation: 'reportRead', principal: 'svc_1', points: 10, requests: 1 },
      { operation: 'listThings', principal: 'svc_1', points: 3, requests: 3 },
      { operation: 'readThing', principal: 'svc_1', points: 2, requests: 2 },
      { operation: 'listThings', principal: 'person_1', points: 1, requests: 1 },
    ]);
  }
  const { found } = (await (await fetch(`${second.adminUrl}/find?q=refused-1`)).json()) as FindResult;
  expect(found).toMatchObject([{ kind: 'request', id: 'refused-1', isExplained: true }]);
  const { stdout } = await runHere(() => why('refused-1', { url: second.adminUrl }));
  expect(stdout).toMatch(/^429 at .* UTC by .*, to svc_1 for Account acct_1\n/);
  expect(stdout).toContain('Account acct_1 had used 16 of 25 points in 1 min (account-read); it costs 10');
  expect(stdout).toMatch(/The limit of 25 is an override of acct_1, .*limits\.yaml:\d+\./);
  expect(stdout).toMatch(/reportRead +svc_1 +1 +10\n/);
});

it('all requests of a flood are found, whichever replica refused them', async () => {
  const store = uniqueRedisStore();
  const gateways = [await start({ store }), await start({ store })] as const;
  await Promise.all(Array.from({ length: 20 }, () => gateways[0].send('GET', '/v3/things')));
  const ids = Array.from({ length: 60 }, (_, index) => `flood-${index}`);
  await Promise.all(ids.map((id, index) => refuse(index % 2 === 0 ? gateways[0] : gateways[1], id)));
  for (const id of ids) {
    const refusals = await refusalsOf(gateways[1], id);
    expect(refusals, id).toMatchObject([{ used: 20, limit: { limit: 20, source: 'default' } }]);
  }
});

it('a block, a live limit and a plan are named', async () => {
  const gateway = await start({
    store: uniqueRedisStore(),
    limits: {
      plans: { small: { 'account-read': 12 } },
      accounts: { acct_3: { plan: 'small' } },
    },
  });
  const put = (path: string, body: object) =>
    fetch(`${gateway.adminUrl}/${path}`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ why: 'test', by: 'me', for: '1h', ...body }),
    });
  await gateway.send('GET', '/v3/reports', { token: 'lonely' });
  await refuse(gateway, 'by-plan', '/v3/reports', { token: 'lonely' });
  await put('limits/live/accounts/acct_1', { 'account-read': 11 });
  await gateway.send('GET', '/v3/reports');
  await refuse(gateway, 'by-live', '/v3/reports');
  await put('blocks/accounts/acct_2', {});
  await refuse(gateway, 'by-block', '/v3/things', { token: 'person', account: 'acct_2' });
  expect(await refusalsOf(gateway, 'by-plan')).toMatchObject([
    {
      limitText: expect.stringMatching(/^The limit of 12 is the limit of plan small, .*:\d+\.$/),
      unknown: 0,
    },
  ]);
  expect(await refusalsOf(gateway, 'by-live')).toMatchObject([
    {
      limit: { source: 'live', until: expect.any(String) },
      limitText: expect.stringContaining('a live limit'),
    },
  ]);
  expect(await refusalsOf(gateway, 'by-block')).toMatchObject([
    { text: expect.stringContaining('Account acct_2 is blocked until'), limitText: null, filledBy: [] },
  ]);
});

it('a limit that was lowered below what had been used is said to have been used at least', async () => {
  const gateway = await start({ store: uniqueRedisStore() });
  for (let index = 0; index < 20; index++) await gateway.send('GET', '/v3/things');
  const lowered = await fetch(`${gateway.adminUrl}/limits/live/accounts/acct_1`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ why: 'test', by: 'me', for: '1h', 'account-read': 15 }),
  });
  expect(lowered.status).toBe(200);
  await refuse(gateway, 'lowered');
  expect(await refusalsOf(gateway, 'lowered')).toMatchObject([
    {
      text: expect.stringContaining('Account acct_1 had used at least 15 of 15 points in 1 min'),
      used: 15,
      filledBy: [{ operation: 'listThings', points: 20 }],
      unknown: 0,
    },
  ]);
});

it('a limit of a year is explained by what was admitted since the year began', async () => {
  const annual = { per: 'account', points: 10, period: 'year', timeZone: 'Europe/Berlin' };
  const gateway = await start({ store: uniqueRedisStore(), limits: { limits: { annual } } });
  await gateway.send('GET', '/v3/reports');
  await refuse(gateway, 'by-year');
  const { startMs } = calendarOf({ unit: 'year', timeZone: 'Europe/Berlin', startsOn: 1 }).at(Date.now());
  const begin = new Date(startMs).toISOString();
  expect(await refusalsOf(gateway, 'by-year')).toMatchObject([
    {
      text: expect.stringContaining('Account acct_1 had used 10 of 10 points per year (annual)'),
      limit: { period: { unit: 'year', start: begin } },
      filledText: expect.stringContaining(`Admitted from ${shownTime(begin)} to `),
      filledBy: [{ operation: 'reportRead', points: 10 }],
      unknown: 0,
    },
  ]);
});

it('a limit in requests is filled by requests that stated a cost of 0, and not by refunded ones', async () => {
  const limits = { calls: { per: 'account', requests: 3, window: '1h' } };
  const gateway = await startSettling({ limits: { ...PLENTY, limits } });
  const answers = [
    [500, ''],
    [404, ''],
    [200, '{"usage":{"total_tokens":0}}'],
    [200, '{"usage":{"total_tokens":812}}'],
    [403, '{"usage":{"total_tokens":7}}'],
  ] as const;
  for (const [index, [status, body]] of answers.entries()) {
    gateway.answer = (response) => response.writeHead(status).end(body);
    await (await gateway.send('POST', '/refund')).text();
    await gateway.costOf(index + 1);
  }
  const headers = { 'X-Request-Id': 'after-refunds' };
  expect((await gateway.send('POST', '/refund', { headers })).status).toBe(429);
  expect(await refusalsOf(gateway, 'after-refunds')).toMatchObject([
    {
      text: expect.stringContaining('had used 3 of 3 requests in 1 h (calls)'),
      filledBy: [{ requests: 3, points: 2 }],
      unknown: 0,
    },
  ]);
});

it('without a shared store the process explains its own refusals, and other ids are unknown', async () => {
  const gateway = await start();
  for (let index = 0; index < 20; index++) await gateway.send('GET', '/v3/things');
  await refuse(gateway, 'refused-2');
  expect(await refusalsOf(gateway, 'refused-2')).toMatchObject([{ used: 20, unknown: 0 }]);
  await gateway.send('GET', '/v3/things', { token: null, headers: { 'X-Request-Id': 'a-401' } });
  for (const id of ['a-401', 'nobody']) expect((await asked(gateway, id)).status).toBe(404);
  const { failure } = await runHere(() => why('nobody', { url: gateway.adminUrl }));
  expect(failure).toContain(
    'No 429 of a request with the id nobody is known. Refusals are kept for 24 h, and are lost if Redis loses its data.',
  );
});

it('while Redis is away the answer is a 503, and refusals that wait are written when it is back', async () => {
  const server = await startRedisServer();
  onTestFinished(() => server.stop());
  const store = { ...uniqueRedisStore(server.url), onStoreFailure: 'share', expectedReplicas: 1 };
  const gateway = await start({ store });
  await server.kill();
  for (let index = 0; index < 20; index++) await gateway.send('GET', '/v3/things');
  await refuse(gateway, 'refused-3');
  expect((await asked(gateway, 'refused-3')).status).toBe(503);
  await server.start();
  await expect
    .poll(() => refusalsOf(gateway, 'refused-3'), SOON)
    .toMatchObject([
      {
        degraded: expect.any(String),
        used: null,
        // Its part is less than the limit where there are other replicas, and it does not know what they have admitted.
        text: expect.stringContaining(`Account acct_1 had 0 left of ${hostname()}'s part of 20 points in `),
      },
    ]);
});

it('what another program wrote in the place of refusals is ignored', async () => {
  const store = uniqueRedisStore();
  const gateway = await start({ store });
  for (let index = 0; index < 20; index++) await gateway.send('GET', '/v3/things');
  await refuse(gateway, 'refused-4');
  expect(await refusalsOf(gateway, 'refused-4')).toHaveLength(1);
  const client = new Redis(sharedRedisUrl());
  onTestFinished(() => client.disconnect());
  const keys = await client.keys(`${store.keyPrefix}:1:refusals:*`);
  expect(keys).toHaveLength(2);
  for (const key of keys) {
    expect(await client.pttl(key)).toBeGreaterThan(24 * 3_600_000);
    if (!key.endsWith(':ids')) await client.set(key, 'no refusal\n[0,1]\n[0,[1]]\n');
  }
  expect((await asked(gateway, 'refused-4')).status).toBe(404);
  for (const key of keys) {
    await client.del(key);
    await client.sadd(key, 'another type');
  }
  expect((await asked(gateway, 'refused-4')).status).toBe(503);
});
