import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { Deliveries, type NotificationOutcome } from '../../../../src/observe/notify/deliveries.ts';
import { MOST_WAITING, newMessage } from '../../../../src/observe/notify/notifications.ts';
import { startWebhookReceiver } from '../../../fixtures/webhook-receiver.ts';

const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
const WITHIN = { timeout: 20_000, interval: 10 };

async function open(
  statusOf?: (index: number, body: string) => number | undefined,
  { url, allowPrivate = true }: { readonly url?: string; readonly allowPrivate?: boolean } = {},
) {
  const receiver = await startWebhookReceiver(statusOf);
  const counts: Partial<Record<NotificationOutcome, number>> = {};
  const problems: string[] = [];
  const log = pino({}, { write: (line: string) => void problems.push(JSON.parse(line).problem) });
  const deliveries = new Deliveries(
    { url: url ?? receiver.url, allowPrivate, secrets: () => [SECRET] },
    {
      notified(outcome, count = 1) {
        counts[outcome] = (counts[outcome] ?? 0) + count;
      },
      showWaiting: () => undefined,
    },
    log,
    [5, 10],
  );
  onTestFinished(async () => {
    await deliveries.close();
    receiver.close();
  });
  return { deliveries, receiver, counts, problems };
}

it('what fails is tried again with the same id and the same body', async () => {
  const { deliveries, receiver, counts } = await open((index) => (index < 2 ? 500 : 204));
  deliveries.add(newMessage({ type: 'limit.reached' }));
  await expect.poll(() => counts, WITHIN).toEqual({ retried: 2, delivered: 1 });
  const [first, ...others] = receiver.calls;
  for (const call of others) {
    expect(call.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(call.body).toBe(first?.body);
  }
  expect(deliveries.waiting).toBe(0);
});

it('it is given up in the end, and a redirect is not followed', async () => {
  const { deliveries, receiver, counts, problems } = await open(() => 302);
  deliveries.add(newMessage({}));
  await expect.poll(() => counts, WITHIN).toEqual({ retried: 2, failed: 1 });
  expect(receiver.calls).toHaveLength(3);
  expect(problems).toEqual(['the webhook answered 302']);
});

it('what waits is bounded, and stopping takes a few seconds at most', async () => {
  const { deliveries, counts, receiver } = await open(() => undefined);
  for (let index = 0; index < MOST_WAITING + 10; index++) deliveries.add(newMessage({}));
  expect(deliveries.waiting).toBe(MOST_WAITING);
  expect(counts).toEqual({ dropped: 10 });
  await expect.poll(() => receiver.calls.length, WITHIN).toBe(4);
  await deliveries.close();
  expect(counts).toEqual({ dropped: MOST_WAITING + 10 });
  deliveries.add(newMessage({}));
  expect(counts).toEqual({ dropped: MOST_WAITING + 11 });
});

it('messages that fail again and again do not hold back new ones, and make room for them', async () => {
  const seen = new Set<string>();
  // Repeated calls get no answer and take as long as they may.
  const { deliveries, counts } = await open((_index, body) => {
    if (body.includes('good')) return 204;
    return seen.size < seen.add(body).size ? 500 : undefined;
  });
  for (let index = 0; index < MOST_WAITING; index++) deliveries.add(newMessage({ owner: 'bad' }));
  await expect.poll(() => seen.size, WITHIN).toBe(MOST_WAITING);
  for (let index = 0; index < 20; index++) deliveries.add(newMessage({ owner: 'good' }));
  await expect.poll(() => counts.delivered, WITHIN).toBe(20);
  expect(counts.dropped).toBeGreaterThan(0);
});

it('what is due is delivered before the gateway stops', async () => {
  const { deliveries, counts } = await open();
  for (let index = 0; index < 20; index++) deliveries.add(newMessage({}));
  await deliveries.close();
  expect(counts).toEqual({ delivered: 20 });
});

it.each([
  ['https://127.0.0.1:1/', '127.0.0.1'],
  ['https://localhost:1/', '(127.0.0.1|::1)'],
  ['https://[::ffff:10.0.0.1]:1/', '::ffff:a00:1'],
  ['https://169.254.169.254/latest', '169.254.169.254'],
  ['https://[fd00::1]/', 'fd00::1'],
])('%s is not called unless private addresses are allowed', async (url, address) => {
  const { deliveries, counts, problems } = await open(undefined, { url, allowPrivate: false });
  deliveries.add(newMessage({}));
  await expect.poll(() => counts, WITHIN).toMatchObject({ failed: 1 });
  expect(problems).toEqual([expect.stringMatching(new RegExp(`is at the private address ${address}, and`))]);
});
