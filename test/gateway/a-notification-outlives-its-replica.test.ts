import { once } from 'node:events';
import { Webhook } from 'standardwebhooks';
import { expect, it, onTestFinished } from 'vitest';
import type { ShownChange } from '../../src/admin/history/change.ts';
import { startGateway, type TestGateway } from '../fixtures/gateway.ts';
import { linesOf } from '../fixtures/log-lines.ts';
import { uniqueRedisStore } from '../fixtures/redis-url.ts';
import { startUpstream } from '../fixtures/upstream.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../fixtures/webhook-receiver.ts';
import { startWeir } from '../fixtures/weir-process.ts';

const secretOf = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const SECRET = secretOf(1);
const WITHIN = { timeout: 60_000, interval: 20 };

/** A day of attempts takes over an hour, and a message is taken over after three seconds. */
const FAST = { WEIR_TEST_PACE: '20' };

type Answers = Parameters<typeof startWebhookReceiver>[0];

async function receive(answerOf: Answers): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver(answerOf);
  onTestFinished(() => receiver.close());
  return receiver;
}

const settingsFor = ({ url }: WebhookReceiver, secret = SECRET) => ({
  notifications: { url, secret, allowPrivate: true },
  log: { level: 'info' },
});

/** Ids in the order in which they arrived, each with a valid signature. */
function idsAt(receiver: WebhookReceiver): readonly string[] {
  return receiver.calls.map(({ body, headers }) => {
    const { id } = new Webhook(SECRET).verify(body, headers as Record<string, string>) as { id: string };
    expect(headers['webhook-id']).toBe(id);
    return id;
  });
}

async function inProcess(test: Parameters<typeof startWeir>[0]) {
  const weir = await startWeir(test, FAST);
  onTestFinished(() => weir.close());
  return weir;
}

async function spendAt(url: string, points: number): Promise<void> {
  const headers = { Authorization: 'Bearer service' };
  for (let spent = 0; spent < points; spent++) await fetch(`${url}/v3/things`, { headers });
}

async function start(store: object, settings: object): Promise<TestGateway> {
  const gateway = await startGateway({ store, settings } as Parameters<typeof startGateway>[0]);
  onTestFinished(() => gateway.close());
  return gateway;
}

it('what a killed replica was delivering is delivered by another one, with the same id', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  let isKilled = false;
  const receiver = await receive(() => (isKilled ? 204 : undefined));
  const store = uniqueRedisStore();
  const test = { upstreamUrl: upstream.url, store, settings: settingsFor(receiver) };
  const first = await inProcess(test);
  await spendAt(first.url, 16);
  await expect.poll(() => receiver.calls.length, WITHIN).toBeGreaterThan(0);
  const ended = once(first.process, 'exit');
  first.process.kill('SIGKILL');
  await ended;
  isKilled = true;
  const lost = receiver.calls.length;
  // It starts after the first one has died.
  const second = await inProcess(test);
  await expect.poll(() => receiver.calls.length, WITHIN).toBe(lost + 1);
  expect(new Set(idsAt(receiver)).size).toBe(1);
  await expect
    .poll(async () => (await fetch(`${second.adminUrl}/metrics`)).text(), WITHIN)
    .toMatch(/weir_notifications_total\{outcome="delivered"\} 1[\s\S]*weir_notifications_waiting 0/);
});

it('replicas that share what failed deliver it once', async () => {
  const accepted: string[] = [];
  // Each fails once at most, because the wait after a second failure is longer than the test.
  const failed = new Set<string>();
  const receiver = await receive((_, body) => {
    const { id } = JSON.parse(body) as { readonly id: string };
    if (failed.size < 3 && !failed.has(id)) {
      failed.add(id);
      return 500;
    }
    accepted.push(id);
    return 204;
  });
  const store = uniqueRedisStore();
  const fleet = [await start(store, settingsFor(receiver)), await start(store, settingsFor(receiver))];
  const tokens = ['service', 'lonely'];
  for (const gateway of fleet)
    for (const token of tokens)
      for (let spent = 0; spent < 10; spent++) await gateway.send('GET', '/v3/things', { token });
  const seen = () => [...new Set(idsAt(receiver))].sort();
  await expect.poll(() => accepted.length, WITHIN).toBeGreaterThanOrEqual(3);
  await expect.poll(() => seen().filter((id) => !accepted.includes(id)), WITHIN).toEqual([]);
  expect([...accepted].sort()).toEqual(seen());
});

it('while the url is changed, a 410 of the old one ends no notification of the replicas that have the new one', async () => {
  const [old, next] = [await receive(() => 410), await receive(() => 500)];
  const store = uniqueRedisStore();
  const [before, after] = [await start(store, settingsFor(old)), await start(store, settingsFor(next))];
  const spend = async (gateway: TestGateway, token: string) => {
    for (let spent = 0; spent < 16; spent++) await gateway.send('GET', '/v3/things', { token });
  };
  // It fails, and waits for its next attempt.
  await spend(after, 'lonely');
  await expect.poll(() => after.metrics(), WITHIN).toContain('weir_notifications_total{outcome="retried"} 1');
  await spend(before, 'service');
  await expect.poll(() => before.metrics(), WITHIN).toContain('weir_notifications_gone 1');
  expect(old.calls).toHaveLength(1);
  await expect.poll(() => after.metrics(), WITHIN).toMatch(/weir_notifications_waiting 2[\s\S]*/);
  expect(await after.metrics()).toContain('weir_notifications_gone 0');
});

it('after a 410 no replica calls, operators see it, and another secret ends it', async () => {
  const receiver = await receive((index) => (index === 0 ? 410 : 204));
  const store = uniqueRedisStore();
  const [first, second] = [
    await start(store, settingsFor(receiver)),
    await start(store, settingsFor(receiver)),
  ];
  const spend = async (gateway: TestGateway, token: string) => {
    for (let spent = 0; spent < 16; spent++) await gateway.send('GET', '/v3/things', { token });
  };
  await spend(first, 'service');
  for (const gateway of [first, second]) {
    await expect.poll(() => gateway.metrics(), WITHIN).toContain('weir_notifications_gone 1');
    const lines = linesOf(
      gateway,
      'the webhook answered 410: nothing is sent until its url or its secret changes',
    );
    expect(lines).toHaveLength(1);
  }
  const changes = async () => {
    const answer = await fetch(`${second.adminUrl}/changes`);
    return ((await answer.json()) as ShownChange[]).filter(({ kind }) => kind === 'notifications.ended');
  };
  await expect.poll(changes, WITHIN).toMatchObject([{ text: 'the webhook answered 410' }]);
  await spend(second, 'lonely');
  await expect.poll(() => second.metrics(), WITHIN).toContain('weir_notifications_total{outcome="gone"} 1');
  // A restart changes nothing.
  const third = await start(store, settingsFor(receiver));
  await expect.poll(() => third.metrics(), WITHIN).toContain('weir_notifications_gone 1');
  expect(receiver.calls).toHaveLength(1);
  const fourth = await start(store, settingsFor(receiver, secretOf(2)));
  for (let spent = 0; spent < 4; spent++) await fourth.send('GET', '/v3/things');
  await expect.poll(() => receiver.calls.length, WITHIN).toBe(2);
  expect(await fourth.metrics()).toContain('weir_notifications_gone 0');
});
