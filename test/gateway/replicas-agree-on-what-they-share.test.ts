import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ShownLimit } from '../../src/admin/facts/live-limit-api.ts';
import type { FleetSnapshot } from '../../src/admin/fleet/snapshot.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { startClockedRedis } from '../fixtures/redis-clock.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { revokeHere } from '../fixtures/revoke.ts';

const SOON = { timeout: 30_000, interval: 50 };
const HOUR_MS = 3_600_000;
const WHY = { why: 'launch', by: 'alice' };

type Store = Parameters<typeof startGateway>[0] extends infer O
  ? NonNullable<O>['store' & keyof NonNullable<O>]
  : never;

async function start(store: NonNullable<Store>): Promise<TestGateway> {
  const gateway = await startGateway({ store, settings: { log: { level: 'info' } } });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** The limit of account-read that the next response of acct_1 names. */
async function limitOf(gateway: TestGateway): Promise<number> {
  const response = await gateway.send('GET', '/v3/things');
  return Number(/"account-read";q=(\d+)/.exec(response.headers.get('RateLimit-Policy') ?? '')?.[1]);
}

const put = (gateway: TestGateway, body: object) =>
  fetch(`${gateway.adminUrl}/limits/live/accounts/acct_1`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...WHY, ...body }),
  });

const revoke = (gateway: TestGateway) =>
  fetch(`${gateway.adminUrl}/revocations`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...WHY, principal: 'svc_3' }),
  });

const audits = ({ lines }: TestGateway) =>
  lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ audit }) => audit === true);

const limitMessage = (limit: number, atMs: number) =>
  JSON.stringify({ bucket: 'account-read', id: 'acct_1', limit, atMs, untilMs: atMs + HOUR_MS, ...WHY });

it.each([
  [7000, 5000],
  [5000, 7000],
])(
  'two changes of one millisecond, %i and then %i, leave the same limit by message and from the record',
  async (...limits) => {
    const store = uniqueRedisStore();
    const receiver = await start(store);
    const client = new Redis(sharedRedisUrl());
    onTestFinished(() => client.disconnect());
    const atMs = Date.now();
    const channel = `${store.keyPrefix}:1:limits`;
    for (const text of limits.map((limit) => limitMessage(limit, atMs))) {
      await client.zadd(`${channel}:record`, atMs + HOUR_MS, text);
      await client.publish(channel, text);
    }
    await expect.poll(() => limitOf(receiver), SOON).not.toBe(20);
    const later = await start(store);
    expect(await limitOf(later)).toBe(await limitOf(receiver));
  },
);

it('a replica that is ten seconds ahead applies what is set for three seconds, and reports its clock', async () => {
  const redis = await startClockedRedis();
  onTestFinished(() => redis.stop());
  redis.shiftClock(-10);
  const store = { kind: 'redis', url: redis.url, keyPrefix: 'clocked', deadlineMs: 5_000 };
  const gateways = [await start(store), await start(store)] as const;
  expect((await put(gateways[0], { 'account-read': 5000, for: '3s' })).status).toBe(200);
  await expect.poll(() => limitOf(gateways[1]), { ...SOON, interval: 5 }).toBe(5000);
  for (const gateway of gateways) await expect.poll(() => limitOf(gateway), SOON).toBe(20);

  const [{ adminUrl, lines }] = gateways;
  expect(lines.join('')).toMatch(
    /"offsetSeconds":(9\.9\d*|10(\.\d+)?),.*"the clock of this replica differs from the clock of Redis"/,
  );
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  const offset = Number(/^weir_clock_offset_seconds ([\d.]+)$/m.exec(metrics)?.[1]);
  expect(Math.round(offset)).toBe(10);
  const fleet = (await (await fetch(`${adminUrl}/fleet`)).json()) as FleetSnapshot;
  for (const { clockOffsetMs } of fleet.replicas) expect(Math.round((clockOffsetMs ?? 0) / 1_000)).toBe(10);
});

describe('with a Redis user who may not publish or subscribe', () => {
  async function startRestricted(...rights: string[]) {
    const user = ['weir', 'on', '>secret', '~*', 'resetchannels', '+@all', ...rights];
    const redis = await startRedisServer({ args: ['--user', ...user] });
    onTestFinished(() => redis.stop());
    const client = new Redis(redis.url);
    onTestFinished(() => client.disconnect());
    const store = { ...uniqueRedisStore(redis.url), username: 'weir', password: 'secret' };
    return { store, client };
  }

  it('a change is recorded, the answer and the audit line say so, and every replica applies it', async () => {
    const { store } = await startRestricted();
    const gateways = [await start(store), await start(store)] as const;
    const response = await put(gateways[0], { 'account-read': 5000 });
    expect(response.status).toBe(200);
    const note = expect.stringMatching(
      /^It is recorded, and every replica reads the record within 5 seconds\. .*may not publish/,
    );
    expect((await response.json()) as ShownLimit[]).toMatchObject([{ limit: 5000, notes: [note] }]);
    const revoked = await revoke(gateways[0]);
    expect([revoked.status, await revoked.json()]).toMatchObject([
      201,
      { target: 'svc_3', notes: expect.arrayContaining([note]) },
    ]);
    expect(audits(gateways[0])).toMatchObject([
      { action: 'limit set', ...WHY, outcome: 'recorded', problem: expect.stringContaining('publish') },
      { action: 'revoked', ...WHY, outcome: 'recorded' },
    ]);
    for (const gateway of gateways) {
      await expect.poll(() => limitOf(gateway), SOON).toBe(5000);
      await expect
        .poll(async () => (await gateway.send('GET', '/v3/things', { token: 'lonely' })).status, SOON)
        .toBe(401);
      expect(gateway.lines.join('')).toContain('live limits reach this replica up to 5 seconds late');
    }
    const config = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:2', store });
    expect((await revokeHere({ config, principal: 'svc_1' })).stdout).toContain(
      'It is recorded, and every gateway reads',
    );
  });

  it.each(['-zadd', '-zrevrange', '-pexpireat'])(
    'with %s as well, nothing is changed, and the answer and the audit line say so',
    async (right) => {
      const { store, client } = await startRestricted(right);
      const gateway = await start(store);
      const response = await put(gateway, { 'account-read': 5000 });
      expect([response.status, await response.text()]).toEqual([
        503,
        expect.stringContaining('Nothing was changed'),
      ]);
      expect((await revoke(gateway)).status).toBe(503);
      expect(audits(gateway)).toMatchObject([
        { action: 'limit set', ...WHY, outcome: 'unchanged', limits: [{ id: 'acct_1', limit: 5000 }] },
        { action: 'revoked', ...WHY, outcome: 'unchanged', revocation: { target: 'svc_3' } },
      ]);
      expect(
        await client.exists(`${store.keyPrefix}:1:limits:record`, `${store.keyPrefix}:1:revocations:record`),
      ).toBe(0);
      expect(await limitOf(gateway)).toBe(20);
    },
  );
});
