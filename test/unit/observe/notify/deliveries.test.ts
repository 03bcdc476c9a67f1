import { pino } from 'pino';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { pace } from '../../../../src/domain/pace.ts';
import { Changes } from '../../../../src/observe/log/noticed-changes.ts';
import { Deliveries, type NotificationOutcome } from '../../../../src/observe/notify/deliveries.ts';
import { MemoryOutbox, MOST_MESSAGES } from '../../../../src/store/outbox.ts';
import { startWebhookReceiver } from '../../../fixtures/webhook-receiver.ts';

// Restored afterwards, because the files of one worker share their modules.
const usual = { ...pace };
beforeAll(() => {
  Object.assign(pace, { webhookMs: 1_000, webhookWaitsMs: [5, 10], webhookPauseMs: 50, outboxLookMs: 2 });
});
afterAll(() => {
  Object.assign(pace, usual);
});

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
const WITHIN = { timeout: 20_000, interval: 10 };
const EVENT = { type: 'limit.reached', data: {} };

async function open(
  answerOf?: Parameters<typeof startWebhookReceiver>[0],
  { url, allowPrivate = true }: { readonly url?: string; readonly allowPrivate?: boolean } = {},
) {
  const receiver = await startWebhookReceiver(answerOf);
  const counts: Partial<Record<NotificationOutcome, number>> = {};
  const problems: string[] = [];
  const log = pino({}, { write: (line: string) => void problems.push(JSON.parse(line).problem) });
  const outbox = new MemoryOutbox();
  let isGone = () => false;
  const secrets = [SECRET];
  const readSecrets = () => {
    if (secrets.includes('unreadable')) throw new Error('the file is away');
    return secrets;
  };
  const observer = {
    notified(outcome: NotificationOutcome, count = 1) {
      counts[outcome] = (counts[outcome] ?? 0) + count;
    },
    showNotifications: (_: unknown, read: () => boolean) => {
      isGone = read;
    },
  };
  const parts = { outbox, observer, log, changes: new Changes(log, Date.now), nowMs: Date.now };
  const deliveries = new Deliveries({ url: url ?? receiver.url, allowPrivate, secrets: readSecrets }, parts);
  onTestFinished(async () => {
    await deliveries.close();
    receiver.close();
  });
  const add = (event = EVENT, madeMs = Date.now()) => deliveries.add(madeMs, event);
  return { deliveries, outbox, add, receiver, counts, problems, secrets, isGone: () => isGone() };
}

it('what fails is tried again with the same id and the same body, and a signature of the attempt', async () => {
  const { outbox, add, receiver, counts } = await open((index) => (index < 2 ? 500 : 204));
  await add(EVENT, Date.now() + 60_000);
  await expect.poll(() => counts, WITHIN).toEqual({ retried: 2, delivered: 1 });
  const [first, ...others] = receiver.calls;
  expect(others).toHaveLength(2);
  for (const call of others) {
    expect(call.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(call.body).toBe(first?.body);
  }
  expect(outbox.waiting).toBe(0);
});

it('it is given up in the end, and a redirect is not followed', async () => {
  const { add, receiver, counts, problems } = await open(() => 302);
  await add(EVENT, Date.now() - 6);
  await expect.poll(() => counts.failed, WITHIN).toBe(1);
  expect(receiver.calls).toHaveLength((counts.retried ?? 0) + 1);
  expect(problems).toEqual(['the webhook answered 302']);
});

it('a secret that could not be read for a while delays no later notification', async () => {
  const { add, receiver, counts, secrets } = await open();
  const [secret = ''] = secrets.splice(0, 1, 'unreadable');
  for (let count = 0; count < 5; count += 1) await expect(add()).rejects.toThrow('the file is away');
  secrets.splice(0, 1, secret);
  await add();
  await expect.poll(() => counts, WITHIN).toEqual({ delivered: 1 });
  expect(receiver.calls).toHaveLength(1);
});

it('a message that is older than a day is tried once more, and then given up', async () => {
  const { add, receiver, counts } = await open(() => 503);
  await add(EVENT, Date.now() - 100_000);
  await expect.poll(() => counts, WITHIN).toEqual({ failed: 1 });
  expect(receiver.calls).toHaveLength(1);
});

it('after a 410 nothing is sent, until the configuration changes', async () => {
  const { add, receiver, counts, secrets, isGone } = await open((index) => (index === 0 ? 410 : 204));
  await add();
  await expect.poll(() => counts, WITHIN).toEqual({ gone: 1 });
  await expect.poll(isGone, WITHIN).toBe(true);
  await add();
  expect(counts).toEqual({ gone: 2 });
  expect(receiver.calls).toHaveLength(1);
  secrets.push(`whsec_${Buffer.alloc(32, 2).toString('base64')}`);
  await add();
  await expect.poll(() => counts, WITHIN).toEqual({ gone: 2, delivered: 1 });
  await expect.poll(isGone, WITHIN).toBe(false);
});

it.each([
  [429, '1', 990],
  [503, '1', 990],
  [429, undefined, 49],
  // A date has whole seconds, so this one is a second away at least.
  [429, 'a date in two seconds', 990],
])('after a %i with Retry-After %s nothing is sent before that', async (status, after, leastMs) => {
  const { add, receiver, counts } = await open((index) => {
    if (index > 0) return 204;
    const isDate = after?.startsWith('a date') === true;
    const value = isDate ? new Date(Date.now() + 2_000).toUTCString() : after;
    return { status, fields: value === undefined ? {} : { 'Retry-After': value } };
  });
  await add(EVENT, Date.now() + 60_000);
  await expect.poll(() => counts, WITHIN).toEqual({ retried: 1 });
  await add(EVENT, Date.now() + 60_000);
  await expect.poll(() => counts, WITHIN).toEqual({ retried: 1, delivered: 2 });
  const [refused, ...others] = receiver.calls.map(({ atMs }) => atMs);
  for (const atMs of others) expect(atMs - (refused ?? 0)).toBeGreaterThanOrEqual(leastMs);
});

it('a receiver that takes longer than allowed is called again', async () => {
  const { add, counts, receiver } = await open((index) => (index === 0 ? undefined : 204));
  await add(EVENT, Date.now() + 60_000);
  await expect.poll(() => counts, WITHIN).toEqual({ retried: 1, delivered: 1 });
  expect(receiver.calls).toHaveLength(2);
});

it('what waits is bounded, and stopping takes a few seconds at most', async () => {
  const { deliveries, outbox, add, counts, receiver } = await open(() => undefined);
  for (let index = 0; index < MOST_MESSAGES + 10; index++) await add();
  expect(outbox.waiting).toBe(MOST_MESSAGES);
  expect(counts.dropped).toBe(10);
  expect(receiver.calls.length).toBeLessThanOrEqual(4);
  await deliveries.close();
  expect(outbox.waiting).toBe(MOST_MESSAGES);
});

it('messages that fail again and again do not hold back new ones', async () => {
  const seen = new Set<string>();
  // Repeated calls get no answer and take as long as they may.
  const { add, counts } = await open((_index, body) => {
    if (body.includes('good')) return 204;
    return seen.size < seen.add(body).size ? 500 : undefined;
  });
  const madeMs = Date.now() + 60_000;
  for (let index = 0; index < 100; index++) await add({ type: 'bad', data: {} }, madeMs);
  await expect.poll(() => seen.size, WITHIN).toBe(100);
  for (let index = 0; index < 20; index++) await add({ type: 'good', data: {} }, madeMs);
  await expect.poll(() => counts.delivered, WITHIN).toBe(20);
});

it('what is under way is delivered before the gateway stops', async () => {
  const { deliveries, counts, add, outbox } = await open();
  for (let index = 0; index < 4; index++) await add();
  await deliveries.close();
  expect(counts.delivered).toBe(4);
  expect(outbox.waiting).toBe(0);
});

it.each([
  ['https://127.0.0.1:1/', '127.0.0.1'],
  ['https://localhost:1/', '(127.0.0.1|::1)'],
  ['https://[::ffff:10.0.0.1]:1/', '::ffff:a00:1'],
  ['https://169.254.169.254/latest', '169.254.169.254'],
  ['https://[fd00::1]/', 'fd00::1'],
])('%s is not called unless private addresses are allowed', async (url, address) => {
  const { add, counts, problems } = await open(undefined, { url, allowPrivate: false });
  await add(EVENT, Date.now() - 100_000);
  await expect.poll(() => counts, WITHIN).toMatchObject({ failed: 1 });
  expect(problems).toEqual([expect.stringMatching(new RegExp(`is at the private address ${address}, and`))]);
});
