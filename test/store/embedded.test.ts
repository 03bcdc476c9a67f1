import { expect, onTestFinished, test } from 'vitest';
import { type CounterSettings, createStore, type Limit } from '../../src/store/embedded.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';

const hourly: Limit = { name: 'hourly', owner: 'acme', limit: 10, windowSeconds: 3600 };
const daily: Limit = { name: 'daily', owner: 'acme', limit: 15, windowSeconds: 86_400 };

const KINDS: readonly [string, () => CounterSettings][] = [
  ['memory', () => ({ kind: 'memory' })],
  ['redis', () => ({ kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5000, keyPrefix: uniquePrefix() })],
];

function open(settings: CounterSettings) {
  const store = createStore(settings);
  onTestFinished(() => store.close());
  return store;
}

/** Redis may still be connecting. */
async function firstDecision(store: ReturnType<typeof createStore>, limits: readonly Limit[]) {
  return expect
    .poll(() => store.peek({ limits }), { timeout: 20_000 })
    .toMatchObject({ outcome: 'admitted' });
}

test.each(KINDS)('in %s, all limits of a charge have room, or nothing is spent', async (_, settings) => {
  const store = open(settings());
  const limits = [hourly, daily];
  await firstDecision(store, limits);
  expect(await store.charge({ limits, cost: 6 })).toMatchObject({
    outcome: 'admitted',
    buckets: [{ remaining: 4 }, { remaining: 9 }],
  });
  expect(await store.charge({ limits, cost: 6 })).toMatchObject({ outcome: 'denied' });
  expect(await store.charge({ limits: [daily], group: 'acme', cost: 9 })).toMatchObject({
    outcome: 'admitted',
    buckets: [{ remaining: 0 }],
  });
});

test('programs with the same Redis and prefix share their counts', async () => {
  const settings: CounterSettings = {
    kind: 'redis',
    url: sharedRedisUrl(),
    deadlineMs: 5000,
    keyPrefix: uniquePrefix(),
  };
  const [one, other] = [open(settings), open(settings)];
  await firstDecision(one, [hourly]);
  await firstDecision(other, [hourly]);
  expect(await one.charge({ limits: [hourly], cost: 7 })).toMatchObject({ buckets: [{ remaining: 3 }] });
  expect(await other.charge({ limits: [hourly], cost: 7 })).toMatchObject({ outcome: 'denied' });
});

test.each([
  ['no limit', { limits: [] }],
  ['a cost of 0', { limits: [hourly], cost: 0 }],
  ['half a point', { limits: [hourly], cost: 0.5 }],
  ['one limit twice', { limits: [hourly, hourly] }],
  ['a window of 0', { limits: [{ ...hourly, windowSeconds: 0 }] }],
  ['what no limit counts', { limits: [{ ...hourly, counts: 'tokens' as 'points' }] }],
  [
    'an owner without a value',
    { limits: [{ ...hourly, owner: undefined as unknown as string }], group: 'a' },
  ],
  ['a number as an owner', { limits: [{ ...hourly, owner: 7 as unknown as string }] }],
  ['a name that is null', { limits: [{ ...hourly, name: null as unknown as string }] }],
  ['a group that is no text', { limits: [hourly], group: {} as string }],
])('%s is an error, and not an uncounted request', async (_, spending) => {
  await expect(open({ kind: 'memory' }).charge(spending)).rejects.toThrow(RangeError);
});

test.each(KINDS)('in %s, members of a limit that it does not have change nothing', async (_, settings) => {
  const store = open(settings());
  await firstDecision(store, [hourly]);
  const more = { ...hourly, name: 'more', calendar: 'gregorian', record: {}, key: 'k', sum: 1 };
  const charged = { outcome: 'admitted', buckets: [{ remaining: 7 }] };
  expect(await store.charge({ limits: [more], cost: 3 })).toMatchObject(charged);
  expect(await store.peek({ limits: [hourly] })).toMatchObject({ buckets: [{ remaining: 10 }] });
});

test('a deadline that no timer has, and a kind that is not known, are errors', () => {
  const redis = { kind: 'redis', url: sharedRedisUrl() } as const;
  for (const deadlineMs of [0, 0.5, Number.NaN, 1e12])
    expect(() => createStore({ ...redis, deadlineMs })).toThrow('deadlineMs must be a whole number');
  const unknown = { url: redis.url } as CounterSettings;
  expect(() => createStore(unknown)).toThrow('kind must be one of memory, redis, sentinel, cluster');
});

test.each([
  'http://127.0.0.1:6379',
  'localhost:6379',
  '127.0.0.1:6379',
  'redis://a:b:c',
  undefined as unknown as string,
])('the URL %s is an error, and not a store that counts nothing', (url) => {
  expect(() => createStore({ kind: 'redis', url })).toThrow(
    new RangeError('url must be a redis:// or rediss:// URL'),
  );
});

test('a prefix with a brace is an error, because it would move keys to another slot', () => {
  expect(() => createStore({ kind: 'memory', keyPrefix: '{a}' })).toThrow(RangeError);
});
