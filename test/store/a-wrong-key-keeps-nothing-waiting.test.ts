/** Whatever another program writes to a key of Weir, nothing waits until somebody deletes it. */
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { StoreHealth } from '../../src/admin/fleet/store-health.ts';
import { bucketKey } from '../../src/store/keys.ts';
import { openShared, openStore } from '../../src/store/open-store.ts';
import type { SharedStore } from '../../src/store/shared-store.ts';
import type { Store, UncountedReason } from '../../src/store/store.ts';
import { type BreakerState, silentObserver } from '../../src/store/store-observer.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { startTcpProxy } from '../fixtures/tcp-proxy.ts';
import { WRONG_TYPES, wrongBytes } from '../fixtures/wrong-values.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const SOON = { timeout: 30_000, interval: 10 };
const LIMIT = 1_000;

function open(port = Number(new URL(sharedRedisUrl()).port), deadlineMs = 5_000) {
  const seen = { states: [] as BreakerState[], uncounted: [] as UncountedReason[] };
  const observer = {
    ...silentObserver,
    breakerChanged: (_route: string, state: BreakerState) => void seen.states.push(state),
    uncounted: (reason: UncountedReason) => void seen.uncounted.push(reason),
  };
  const store = openStore({ kind: 'redis', url: `redis://127.0.0.1:${port}`, deadlineMs }, observer);
  onTestFinished(() => store.close());
  return { store, seen };
}

function charge(store: Store, key: string) {
  return store.charge({ buckets: [{ key, limit: LIMIT, windowSeconds: 3_600 }], cost: 1 });
}

async function untilCounted(store: Store, key = uniquePrefix()): Promise<void> {
  await vi.waitFor(async () => expect((await charge(store, key)).outcome).toBe('admitted'), SOON);
}

it('a bucket that is wrong again and again opens no breaker, and every other owner is counted exactly', async () => {
  const { store, seen } = open();
  await untilCounted(store);
  seen.uncounted.length = 0;
  const prefix = uniquePrefix();
  const [wrong, other] = ['wrong', 'other'].map((id) => bucketKey(prefix, 'org', 'account-read', id));
  const values = [...WRONG_TYPES, ...[14, 15, 26, 191, 192, 194, 202, 2_048].flatMap(wrongBytes)];
  for (const { put } of values) {
    await put(client, wrong ?? '');
    // One call, in which the wrong one comes first.
    await Promise.all([charge(store, wrong ?? ''), charge(store, other ?? ''), charge(store, other ?? '')]);
  }
  expect(seen.states).toEqual(['closed']);
  expect(seen.uncounted.filter((reason) => reason === 'wrongtype')).toHaveLength(WRONG_TYPES.length);
  expect(seen.uncounted.filter((reason) => reason === 'wrongvalue')).toHaveLength(seen.uncounted.length - 5);
  expect(seen.uncounted).toHaveLength(values.length);
  expect(await charge(store, other ?? '')).toMatchObject({
    outcome: 'admitted',
    buckets: [{ remaining: LIMIT - 2 * values.length - 1 }],
  });
});

it.each([...WRONG_TYPES, ...wrongBytes(194)])(
  'a breaker closes although the key that its probes write holds $name',
  async ({ put }) => {
    const line = await startTcpProxy(Number(new URL(sharedRedisUrl()).port));
    onTestFinished(() => line.stop());
    const { store, seen } = open(line.port, 50);
    // The only one: the probes' key is derived from it.
    const key = bucketKey(uniquePrefix(), 'org', 'account-read', 'a');
    await untilCounted(store, key);
    line.set({ kind: 'black hole' });
    await vi.waitFor(async () => {
      await charge(store, key);
      expect(seen.states).toContain('open');
    }, SOON);
    await put(client, `${key}:probe`);
    line.set({ kind: 'open' });
    await untilCounted(store, key);
  },
);

it('a store whose health is asked at a wrong key answers', async () => {
  const { store } = open();
  await untilCounted(store);
  for (const { put } of WRONG_TYPES) {
    const keyPrefix = uniquePrefix();
    await put(client, `${keyPrefix}:1:start`);
    let nowMs = 0;
    const measured: boolean[] = [];
    const health = new StoreHealth({
      store,
      keyPrefix,
      nowMs: () => nowMs,
      measured: (isAnswering) => measured.push(isAnswering),
    });
    for (; nowMs < 60_000; nowMs += 10_000) await health.measure();
    expect([health.last.problem, ...new Set(measured)]).toEqual([null, true]);
  }
});

describe.each([...WRONG_TYPES.filter(({ name }) => name !== 'a sorted set'), ...wrongBytes(300)])(
  'what replicas share, if a key holds $name:',
  ({ put }) => {
    function share() {
      const keyPrefix = uniquePrefix();
      const reported = new Set<string>();
      const settings = { kind: 'redis' as const, url: sharedRedisUrl(), deadlineMs: 5_000, keyPrefix };
      const openOne = () => openShared(settings, (key) => reported.add(key)) as SharedStore;
      return { keyPrefix, reported, openOne };
    }

    it('a record is reported, followed all the same, and replaced by the next message', async () => {
      const { keyPrefix, reported, openOne } = share();
      const record = `${keyPrefix}:1:limits:record`;
      await put(client, record);
      const received = new Set<string>();
      const states: boolean[] = [];
      const channel = openOne().subscribe('limits', {
        message: (text) => void received.add(text),
        connected: (isConnected) => void states.push(isConnected),
      });
      onTestFinished(() => channel.close());
      await channel.subscribed;
      expect([states, [...reported]]).toEqual([[true], [record]]);
      const untilMs = Date.now() + 60_000;
      await openOne().withRecord('limits', async (one) => {
        expect(Math.abs((await one.nowMs()) - Date.now())).toBeLessThan(60_000);
        await one.publish([{ text: 'raised', untilMs }]);
      });
      await vi.waitFor(() => expect([...received]).toEqual(['raised']), SOON);
      expect(await openOne().withRecord('limits', (one) => one.read())).toEqual(['raised']);
      expect(await client.pttl(record)).toBeGreaterThan(0);
    });

    it('a record that a replica remembers is replaced by it', async () => {
      const { keyPrefix, openOne } = share();
      await put(client, `${keyPrefix}:1:blocks:record`);
      const known = { text: 'known', untilMs: Date.now() + 60_000 };
      const channel = openOne().subscribe('blocks', {
        message() {},
        connected() {},
        missingFrom: (held) => (held.has(known.text) ? [] : [known]),
      });
      onTestFinished(() => channel.close());
      await vi.waitFor(
        async () => expect(await client.zrange(`${keyPrefix}:1:blocks:record`, '0', '-1')).toEqual(['known']),
        SOON,
      );
    });

    it('a list of replicas and a board are replaced by the next replica', async () => {
      const { keyPrefix, reported, openOne } = share();
      const keys = [`${keyPrefix}:1:replicas`, `${keyPrefix}:1:{top}`];
      for (const key of [...keys, `${keyPrefix}:1:{top}:one`]) await put(client, key);
      const presence = openOne().openPresence('one');
      const board = openOne().openBoard('top', 'one');
      onTestFinished(async () => void (await Promise.all([presence.close(), board.close()])));
      const seen = await vi.waitFor(() => presence.announce(), SOON);
      expect(seen.replicas).toBe(1);
      expect(await presence.announce()).toEqual({ replicas: 1, isContinued: true });
      await vi.waitFor(() => board.post('text'), SOON);
      expect((await board.read()).texts).toEqual(new Map([['one', 'text']]));
      expect([...reported].sort()).toEqual(keys.toSorted());
    });

    it('a claim goes to the first of all that make it', async () => {
      const { keyPrefix, openOne } = share();
      const key = bucketKey(keyPrefix, 'org', '80.account-read', 'a');
      await put(client, key);
      const replicas = [openOne(), openOne(), openOne()].map((shared) => shared.openClaims());
      onTestFinished(() => {
        for (const claims of replicas) claims.close();
      });
      const claim = { tag: 'org', name: '80.account-read', owner: 'a' };
      const first = await vi.waitFor(
        () => Promise.all(replicas.map((claims) => claims.claim({ ...claim, owner: 'warm' }, 60_000))),
        SOON,
      );
      expect(first).toHaveLength(3);
      const results = await Promise.all(replicas.map((claims) => claims.claim(claim, 60_000)));
      expect(results.filter((isFirst) => isFirst)).toHaveLength(1);
      expect(await client.pttl(key)).toBeGreaterThan(0);
    });
  },
);

it('a claim that never ends does not count', async () => {
  const keyPrefix = uniquePrefix();
  const claims = openShared({
    kind: 'redis',
    url: sharedRedisUrl(),
    deadlineMs: 5_000,
    keyPrefix,
  })?.openClaims();
  onTestFinished(() => claims?.close());
  await client.set(bucketKey(keyPrefix, 'org', '80.account-read', 'a'), '1');
  const claim = () => claims?.claim({ tag: 'org', name: '80.account-read', owner: 'a' }, 60_000);
  expect(await vi.waitFor(claim, SOON)).toBe(true);
  expect(await claim()).toBe(false);
});
