import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import type { RefusedRequest } from '../../../src/admin/fleet/refusals.ts';
import type { FleetSnapshot } from '../../../src/admin/fleet/snapshot.ts';
import { startGateway, type TestGateway } from '../../fixtures/gateway.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../../fixtures/redis-url.ts';

const SOON = { timeout: 20_000, interval: 50 };

async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

const read = async ({ adminUrl }: TestGateway) =>
  (await (await fetch(`${adminUrl}/fleet?window=10m`)).json()) as FleetSnapshot;

/** Two admitted requests of 10 points, one refused, and one without a token. */
async function spend(gateway: TestGateway): Promise<void> {
  for (let round = 0; round < 3; round++) await gateway.send('GET', '/v3/reports');
  await gateway.send('GET', '/v3/things', { token: null });
}

const TOTALS = { requests: 4, points: 20, refused: 1, degraded: 0, failed: 0 };

/** The events of a stream, parsed one by one. */
async function* eventsOf(url: string): AsyncGenerator<{ name: string; data: unknown }> {
  const response = await fetch(url);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  expect(response.headers.get('cache-control')).toBe('no-store');
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
      yield { name, data: JSON.parse(data) };
    }
  }
}

it('one process shows what it has counted, with the last refusals and their reasons', async () => {
  const gateway = await start();
  await spend(gateway);
  await expect.poll(async () => (await read(gateway)).totals, SOON).toEqual(TOTALS);
  // A second is shown once every replica has had the time to publish it.
  const sum = (numbers: readonly (number | null)[]) =>
    numbers.reduce<number>((total, one) => total + Number(one), 0);
  await expect.poll(async () => sum((await read(gateway)).series.requests), SOON).toBe(4);
  const { replicas, refusals, top, series } = await read(gateway);
  expect(sum(series.points)).toBe(20);
  expect(Math.max(...series.p99Ms.map(Number))).toBeGreaterThan(0);
  const version = /weir_limits_info\{sha="([^"]+)"\}/.exec(await gateway.metrics())?.[1];
  expect(replicas).toMatchObject([
    { isReady: true, limits: version, liveLimits: 0, store: { kind: 'memory', breaker: 'closed' } },
  ]);
  expect(top.accounts.byPoints).toMatchObject([{ id: 'acct_1', points: 20 }]);
  expect(refusals).toMatchObject([
    {
      account: 'acct_1',
      operation: 'reportRead',
      status: 429,
      reason: 'RateLimitExceeded',
      bucket: 'account-read',
      cost: 10,
      detail: expect.stringMatching(
        /^Account acct_1 has used its 20 points per minute for reads; try again in \d+ s\.$/,
      ),
    },
  ]);
});

it('every replica shows all, and one that stops is gone', async () => {
  const store = uniqueRedisStore();
  const [one, other] = [await start({ store }), await startGateway({ store })];
  await spend(one);
  await other.send('GET', '/v3/reports');
  for (const gateway of [one, other]) {
    const shown = async () => {
      const { totals, replicas, refusals } = await read(gateway);
      const kinds = replicas.map(({ store: { kind } }) => kind);
      const versions = new Set(replicas.map(({ limits }) => limits)).size;
      return { totals, kinds, versions, refusals: refusals.length };
    };
    await expect.poll(shown, SOON).toEqual({
      totals: { requests: 5, points: 20, refused: 2, degraded: 0, failed: 0 },
      kinds: ['redis', 'redis'],
      versions: 1,
      refusals: 2,
    });
  }
  await other.close();
  await expect.poll(async () => (await read(one)).replicas.length, SOON).toBe(1);
  const client = new Redis(sharedRedisUrl());
  onTestFinished(async () => client.disconnect());
  for (const key of await client.keys(`${store.keyPrefix}:1:{top}*`))
    expect(await client.pttl(key), key).toBeLessThanOrEqual(4_000);
});

it('a stream has the fleet every second, and the refusals of one owner at every replica', async () => {
  const store = uniqueRedisStore();
  const [one, other] = [await start({ store }), await start({ store })];
  await spend(one);
  await other.send('GET', '/v3/things', { token: 'lonely' });
  await other.send('GET', '/v3/reports');
  let seconds = new Set<number>();
  for await (const { name, data } of eventsOf(`${other.adminUrl}/fleet/events?scope=account&id=acct_1`)) {
    if (name === 'fleet') seconds = seconds.add((data as FleetSnapshot).second);
    else if ((data as RefusedRequest[]).length === 2 && seconds.size >= 3) {
      expect(name).toBe('refusals');
      expect((data as RefusedRequest[]).map(({ account }) => account)).toEqual(['acct_1', 'acct_1']);
      return;
    }
  }
  expect.fail('the stream ended');
});

it('a stream can have the changes of the fleet instead of its state', async () => {
  const gateway = await start();
  const names: string[] = [];
  const path = '/fleet/events?scope=account&id=acct_1&only=changes';
  for await (const { name, data } of eventsOf(`${gateway.adminUrl}${path}`)) {
    if (name === 'changes') expect(Object.keys(data as object)).toEqual(['second', 'changes']);
    if (names.push(name) === 4) break;
  }
  expect(names).toEqual(['changes', 'refusals', 'changes', 'refusals']);
  const wrong = await fetch(`${gateway.adminUrl}/fleet/events?only=refusals`);
  expect(wrong.status).toBe(400);
  expect(await wrong.json()).toEqual({
    error: 'window takes 10s, 1m, 10m, range 1m, 10m, 1h, and only changes.',
  });
  const plural = await fetch(`${gateway.adminUrl}/fleet/events?scope=accounts&id=acct_1`);
  expect(plural.status).toBe(400);
  expect(await plural.json()).toEqual({
    error: expect.stringMatching(/^scope takes account, person, .*\.$/),
  });
});

it('the number of streams is bounded, and a gateway that stops ends them', async () => {
  const gateway = await startGateway();
  const url = `${gateway.adminUrl}/fleet/events`;
  const streams = await Promise.all(Array.from({ length: 32 }, () => fetch(url)));
  expect(streams.every(({ status }) => status === 200)).toBe(true);
  const refused = await fetch(url);
  expect([refused.status, await refused.json()]).toEqual([
    503,
    { error: 'Too many consoles are open at this replica.' },
  ]);
  await streams[0]?.body?.cancel();
  await expect
    .poll(async () => {
      const again = await fetch(url);
      if (again.status === 200) streams.push(again);
      else await again.body?.cancel();
      return again.status;
    }, SOON)
    .toBe(200);
  await gateway.close();
  for (const stream of streams.slice(1)) await stream.text();
});

it.each(['window=1h', 'window=', 'range=1d', 'range=toString'])('%s is refused', async (query) => {
  const gateway = await start();
  for (const path of ['/fleet', '/fleet/events'])
    expect((await fetch(`${gateway.adminUrl}${path}?${query}`)).status).toBe(400);
});

it('the state of the fleet needs the admin token', async () => {
  const gateway = await start({
    settings: { admin: { host: '127.0.0.1', port: 0, token: 'a-token-of-admins' } },
  });
  for (const path of ['/fleet', '/fleet/events']) {
    expect((await fetch(`${gateway.adminUrl}${path}`)).status, path).toBe(401);
    const headers = { Authorization: 'Bearer a-token-of-admins' };
    const allowed = await fetch(`${gateway.adminUrl}${path}`, { headers });
    expect(allowed.status, path).toBe(200);
    await allowed.body?.cancel();
  }
});
