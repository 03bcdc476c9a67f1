import { writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { pace } from '../../src/domain/pace.ts';
import { readConfiguration } from '../../src/process/configuration.ts';
import { writeConfiguration } from '../fixtures/configuration.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { linesOf } from '../fixtures/log-lines.ts';
import { startRedisServer } from '../fixtures/redis-server.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../fixtures/webhook-receiver.ts';

const secretOf = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const SECRET = secretOf(1);
const WITHIN = { timeout: 20_000, interval: 20 };

type Options = NonNullable<Parameters<typeof startGateway>[0]>;

async function start(notifications: object, options: Options = {}): Promise<TestGateway> {
  const settings = { notifications, log: { level: 'info' }, ...options.settings };
  const gateway = await startGateway({ ...options, settings });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function receive(statusOf?: (index: number) => number | undefined): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver(statusOf);
  onTestFinished(() => receiver.close());
  return receiver;
}

const to = ({ url }: WebhookReceiver) => ({ url, secret: SECRET, allowPrivate: true });

/** What was received, by the reader of a customer of the platform. */
function eventsAt(receiver: WebhookReceiver) {
  return receiver.calls.map(({ body, headers }) => {
    const event = new Webhook(SECRET).verify(body, headers as Record<string, string>);
    return event as { id: string; type: string; timestamp: string; data: Record<string, unknown> };
  });
}

const sharesAt = (receiver: WebhookReceiver) =>
  eventsAt(receiver).map(({ data }) => `${data.bucket} ${data.owner} ${data.percent}`);

async function spend(gateway: TestGateway, points: number): Promise<void> {
  for (let spent = 0; spent < points; spent++) await gateway.send('GET', '/v3/things');
}

it('at 80 % and at 100 % of a limit per minute the webhook is called once each, signed', async () => {
  const receiver = await receive();
  const gateway = await start(to(receiver));
  await spend(gateway, 15);
  expect(receiver.calls).toEqual([]);
  await spend(gateway, 10);
  await expect.poll(() => receiver.calls.length, WITHIN).toBe(2);
  const [most, all] = eventsAt(receiver);
  expect(most).toMatchObject({
    type: 'limit.reached',
    data: {
      percent: 80,
      bucket: 'account-read',
      scope: 'account',
      owner: 'acct_1',
      account: 'acct_1',
      organization: 'org_1',
      plan: null,
      counts: 'points',
      limit: 20,
      windowSeconds: 60,
      used: 16,
      remaining: 4,
    },
  });
  expect(all?.data).toMatchObject({ percent: 100, used: 20, remaining: 0 });
  expect(Math.abs(Date.parse(most?.timestamp ?? '') - Date.now())).toBeLessThan(60_000);
  expect(receiver.calls.map(({ headers }) => headers['webhook-id'])).toEqual([most?.id, all?.id]);
  expect(await gateway.metrics()).toContain('weir_notifications_total{outcome="delivered"} 2');
});

it('a limit that is used at once is reported as used, and not as nearly used afterwards', async () => {
  const receiver = await receive();
  const gateway = await start(to(receiver), {
    limits: { limits: { batch: { per: 'account', points: 19, window: '1h' } } },
  });
  await gateway.send('GET', '/v3/reports');
  // It does not fit in what is left.
  expect((await gateway.send('GET', '/v3/reports')).status).toBe(429);
  await spend(gateway, 6);
  await expect.poll(() => sharesAt(receiver), WITHIN).toEqual(['batch acct_1 100', 'account-read acct_1 80']);
});

it('of a calendar year, 80 % are reported once by all replicas, with the time until it ends', async () => {
  const receiver = await receive();
  const store = uniqueRedisStore();
  const limits = { limits: { quota: { per: 'account', points: 10, period: 'year' } } };
  const fleet = [
    await start(to(receiver), { store, limits }),
    await start(to(receiver), { store, limits }),
  ] as const;
  await spend(fleet[0], 8);
  await expect.poll(() => sharesAt(receiver), WITHIN).toEqual(['quota acct_1 80']);
  const year = calendarOf({ unit: 'year', timeZone: 'UTC', startsOn: 1 }).at(Date.now());
  const data = eventsAt(receiver)[0]?.data;
  expect(data).toMatchObject({ windowSeconds: (year.endMs - year.startMs) / 1_000, used: 8, remaining: 2 });
  expect(Math.abs(Number(data?.lastsMs) - (year.endMs - Date.now()))).toBeLessThan(60_000);
  await spend(fleet[1], 2);
  await expect.poll(() => sharesAt(receiver), WITHIN).toEqual(['quota acct_1 80', 'quota acct_1 100']);
});

it('of all replicas, the first reports, until the window is over', async () => {
  const receiver = await receive();
  const store = uniqueRedisStore();
  const fleet = [await start(to(receiver), { store }), await start(to(receiver), { store })];
  await Promise.all(fleet.map((gateway) => spend(gateway, 15)));
  const used = ['account-read acct_1 100', 'account-read acct_1 80'];
  await expect.poll(() => [...new Set(sharesAt(receiver))].sort(), WITHIN).toEqual(used);
  await Promise.all(fleet.map((gateway) => gateway.close()));
  expect(sharesAt(receiver).length).toBeLessThanOrEqual(2);
  const redis = new Redis(sharedRedisUrl());
  const keys = await redis.keys(`${store.keyPrefix}:1:*.account-read:*`);
  expect(keys).toHaveLength(2);
  for (const key of keys) {
    const life = await redis.pttl(key);
    // Claims last for the window once the message is kept.
    expect(life).toBeGreaterThan(pace.claimMs);
    expect(life).toBeLessThanOrEqual(60_000);
  }
  redis.disconnect();
});

it('a line of the log has the same, and limits of less than a minute are not reported', async () => {
  const gateway = await start({ log: true }, { limits: { windowSeconds: 59 } });
  await spend(gateway, 25);
  expect(linesOf(gateway, 'limit.reached')).toEqual([]);
  const minute = await start({ log: true });
  await spend(minute, 16);
  await expect
    .poll(() => linesOf(minute, 'limit.reached'), WITHIN)
    .toMatchObject([{ percent: 80, bucket: 'account-read', owner: 'acct_1', account: 'acct_1' }]);
});

it('a question that spends nothing, and a shadow limit, are not reported', async () => {
  const decisions = { host: '127.0.0.1', port: 0 };
  const gateway = await start(
    { log: true },
    {
      settings: { decisions },
      limits: { limits: { tried: { per: 'account', points: 10, window: '1h', shadow: true } } },
    },
  );
  await spend(gateway, 15);
  const question = { token: 'service', method: 'GET', path: '/v3/things', peek: true };
  await fetch(`${gateway.decisionsUrl}/decide`, { method: 'POST', body: JSON.stringify(question) });
  await gateway.send('GET', '/v3/things', { token: 'lonely' });
  await gateway.close();
  expect(linesOf(gateway, 'limit.reached')).toEqual([]);
});

it('a receiver that does not answer delays no request, and keeps no gateway from stopping', async () => {
  const receiver = await receive(() => undefined);
  const gateway = await start(to(receiver));
  await spend(gateway, 20);
  await expect.poll(() => receiver.calls.length, WITHIN).toBe(2);
  expect((await gateway.send('GET', '/v3/things', { token: 'lonely' })).status).toBe(200);
  expect(await gateway.metrics()).toContain('weir_notifications_waiting 2');
  await gateway.close();
  expect(linesOf(gateway, 'notifications waited when the gateway stopped')).toMatchObject([{ waiting: 2 }]);
});

it('a call is signed with each secret of the file, which can be replaced', async () => {
  const receiver = await receive();
  const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1' });
  const secretFile = `${file}.secrets`;
  writeFileSync(secretFile, `${secretOf(2)}\n${SECRET}\n`);
  const gateway = await start({ url: receiver.url, secretFile, allowPrivate: true });
  await spend(gateway, 16);
  await expect.poll(() => receiver.calls.length, WITHIN).toBe(1);
  expect(eventsAt(receiver)).toHaveLength(1);
  writeFileSync(secretFile, secretOf(3));
  await spend(gateway, 4);
  await expect.poll(() => receiver.calls.length, WITHIN).toBe(2);
  expect(() => eventsAt(receiver)).toThrow('No matching signature');
});

it('a Redis that does not record a claim is counted, and asked again later', async () => {
  const redis = await startRedisServer({
    args: ['--user', 'default', 'on', 'nopass', '~*', '&*', '+@all', '-set'],
  });
  onTestFinished(() => redis.stop());
  const receiver = await receive();
  const gateway = await start(to(receiver), { store: { kind: 'redis', url: redis.url, deadlineMs: 5_000 } });
  await expect
    .poll(async () => {
      await spend(gateway, 8);
      return gateway.metrics();
    }, WITHIN)
    .toMatch(/weir_notifications_total\{outcome="unclaimed"\} [1-9]/);
  expect(linesOf(gateway, 'a notification is not sent: the store did not record it')).toMatchObject([
    { problem: expect.stringMatching(/NOPERM|user executing the script can't|ACL failure in script/) },
  ]);
  expect(receiver.calls).toEqual([]);
});

describe('settings that are of no use', () => {
  it.each([
    [{ url: 'https://example.com' }, 'notifications.url: needs a secret that signs the calls'],
    [{ url: 'http://example.com', secret: SECRET }, 'notifications.url: must be an https:// URL'],
    [
      { url: 'https://u:p@example.com', secret: SECRET },
      'notifications.url: must be an http:// or https:// URL',
    ],
    [{ url: 'https://example.com', secret: 'short' }, 'notifications.secret: must be whsec_ and 24 bytes'],
    [
      { url: 'https://example.com', secretFile: 'weir.yaml' },
      'must contain whsec_ and 24 bytes or more in base64',
    ],
  ])('%j are problems', async (notifications, problem) => {
    const file = await writeConfiguration({ upstreamUrl: 'http://127.0.0.1:1', settings: { notifications } });
    await expect(readConfiguration(file, {})).rejects.toThrow(problem);
  });
});
