import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { pace } from '../../src/domain/pace.ts';
import { MemoryOutbox, MOST_MESSAGES, type Outbox } from '../../src/store/outbox.ts';
import type { RemoteStoreSettings } from '../../src/store/redis/connection/redis-options.ts';
import { sharedByRedis } from '../../src/store/redis/shared/shared-by-redis.ts';
import { startRedisCluster } from '../fixtures/redis-cluster.ts';
import { sharedRedisUrl, uniqueRedisStore } from '../fixtures/redis-url.ts';
import { WRONG_TYPES } from '../fixtures/wrong-values.ts';

type Settings = RemoteStoreSettings & { readonly keyPrefix: string };

const RECEIVER = 'receiver';
const SOON = { timeout: 30_000, interval: 20 };

/** An outbox whose connection is open: nothing is queued while it is being made. */
async function openIn(settings: Settings): Promise<Outbox> {
  const outbox = sharedByRedis(settings, () => {}).openOutbox('notices');
  onTestFinished(() => outbox.close());
  await expect.poll(() => outbox.take('nobody', 0, 0).catch(() => undefined), SOON).toBeDefined();
  return outbox;
}

const inRedis = () => openIn(uniqueRedisStore());

describe.each([
  ['in memory', async () => new MemoryOutbox()],
  ['in Redis', inRedis],
  [
    'in a Cluster',
    async () => {
      const cluster = await startRedisCluster();
      onTestFinished(() => cluster.stop());
      return openIn({ kind: 'cluster', nodes: cluster.urls, keyPrefix: 'weir', deadlineMs: 5_000 });
    },
  ],
])('an outbox %s', (_, open) => {
  it('gives each message to one taker, those that were never tried first', async () => {
    const outbox = await open();
    expect(await outbox.add(RECEIVER, 'failed', true)).toEqual({ state: 'taken', dropped: 0 });
    await outbox.postpone('failed', 0);
    expect(await outbox.add(RECEIVER, 'new', false)).toEqual({ state: 'kept', dropped: 0 });
    await pause(2);
    const one = await outbox.take(RECEIVER, 1, 1);
    expect(one).toEqual({ hold: undefined, first: ['new'], repeated: [] });
    expect(await outbox.take(RECEIVER, 4, 0)).toMatchObject({ first: [], repeated: [] });
    expect(await outbox.take(RECEIVER, 4, 2)).toMatchObject({ first: [], repeated: ['failed'] });
    expect(await outbox.take(RECEIVER, 4, 2)).toMatchObject({ first: [], repeated: [] });
    expect(outbox.waiting).toBe(2);
    await outbox.remove('new');
    await outbox.remove('failed');
    // What was delivered does not come back.
    await outbox.postpone('failed', 0);
    await pause(2);
    expect(await outbox.take(RECEIVER, 4, 2)).toMatchObject({ first: [], repeated: [] });
    expect(outbox.waiting).toBe(0);
  });

  it('gives nothing while the receiver wants a pause, and nothing any more after its end', async () => {
    const outbox = await open();
    await outbox.pause(RECEIVER, 60_000);
    expect(await outbox.add(RECEIVER, 'a', true)).toEqual({ state: 'kept', dropped: 0 });
    expect(await outbox.take(RECEIVER, 4, 2)).toEqual({ hold: 'busy', first: [], repeated: [] });
    await outbox.end(RECEIVER);
    expect(await outbox.add(RECEIVER, 'b', true)).toEqual({ state: 'gone', dropped: 0 });
    expect(await outbox.take(RECEIVER, 4, 2)).toEqual({ hold: 'gone', first: [], repeated: [] });
    // Another address or secret is another receiver.
    expect(await outbox.add('other', 'c', false)).toEqual({ state: 'kept', dropped: 0 });
    const { hold, first } = await outbox.take('other', 4, 2);
    expect(hold).toBeUndefined();
    expect(first).toContain('c');
  });

  it('drops the message that is due last, where there are too many', async () => {
    const outbox = await open();
    await outbox.add(RECEIVER, 'oldest', true);
    await outbox.postpone('oldest', 600_000);
    for (let count = 1; count < MOST_MESSAGES; count += 101) {
      const adding = Array.from({ length: 101 }, (_unused, n) => outbox.add(RECEIVER, `${count + n}`, false));
      expect((await Promise.all(adding)).every(({ dropped }) => dropped === 0)).toBe(true);
    }
    expect(await outbox.add(RECEIVER, 'new', false)).toEqual({ state: 'kept', dropped: 1 });
    await outbox.take(RECEIVER, 0, 0);
    expect(outbox.waiting).toBe(MOST_MESSAGES);
    await outbox.postpone('oldest', 0);
    await pause(2);
    expect((await outbox.take(RECEIVER, 10, 10)).repeated).toEqual([]);
  });
});

it('a message whose taker has ended is taken by another replica', async () => {
  const settings = uniqueRedisStore();
  const [dead, other] = [await openIn(settings), await openIn(settings)];
  await dead.add(RECEIVER, 'a', true);
  dead.close();
  expect(await other.take(RECEIVER, 4, 2)).toMatchObject({ first: [], repeated: [] });
  const taken = () => other.take(RECEIVER, 4, 2).then(({ repeated }) => repeated);
  await expect.poll(taken, { timeout: pace.outboxLeaseMs + 30_000, interval: 100 }).toEqual(['a']);
});

it('the end of one receiver leaves what waits to the one that replaces it, and so does a pause', async () => {
  const outbox = await inRedis();
  await outbox.add('old', 'a', false);
  await outbox.add('new', 'b', false);
  await outbox.end('old');
  expect(await outbox.take('new', 1, 1)).toEqual({ hold: undefined, first: ['a'], repeated: [] });
  await outbox.pause('new', 60_000);
  expect(await outbox.take('old', 1, 1)).toMatchObject({ hold: 'gone' });
  expect(await outbox.take('third', 1, 1)).toEqual({ hold: undefined, first: ['b'], repeated: [] });
});

it('every key expires', async () => {
  const settings = uniqueRedisStore();
  const outbox = await openIn(settings);
  await outbox.end('gone');
  await outbox.add(RECEIVER, 'a', false);
  const client = new Redis(sharedRedisUrl());
  onTestFinished(() => client.disconnect());
  const keys = await client.keys(`${settings.keyPrefix}:*`);
  expect(keys.sort()).toEqual(['', ':hold:gone'].map((end) => `${settings.keyPrefix}:1:{notices}${end}`));
  for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(86_400_000);
});

const OTHER_TYPES = WRONG_TYPES.filter(({ name }) => name !== 'a sorted set');

it.each(OTHER_TYPES)('messages are kept although their keys hold $name', async ({ put }) => {
  const settings = uniqueRedisStore();
  const outbox = await openIn(settings);
  const client = new Redis(sharedRedisUrl());
  onTestFinished(() => client.disconnect());
  for (const end of ['', `:hold:${RECEIVER}`]) await put(client, `${settings.keyPrefix}:1:{notices}${end}`);
  expect(await outbox.take(RECEIVER, 4, 2)).toMatchObject({ first: [], repeated: [] });
  expect(await outbox.add(RECEIVER, 'a', false)).toEqual({ state: 'kept', dropped: 0 });
  expect(await outbox.take(RECEIVER, 4, 2)).toMatchObject({ first: ['a'] });
});

it('says why Redis cannot be reached', async () => {
  const settings: Settings = {
    kind: 'redis',
    url: 'redis://127.0.0.1:1',
    keyPrefix: 'weir',
    deadlineMs: 5_000,
  };
  const outbox = sharedByRedis(settings, () => {}).openOutbox('notices');
  onTestFinished(() => outbox.close());
  const failure = () =>
    outbox.take(RECEIVER, 1, 1).then(
      () => 'none',
      (error: unknown) => String(error),
    );
  await expect.poll(failure, SOON).toContain('connect ECONNREFUSED 127.0.0.1:1');
});
