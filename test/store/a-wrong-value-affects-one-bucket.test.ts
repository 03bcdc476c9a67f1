/** Whatever another program writes to a bucket's key, of any type and length. */
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { pace } from '../../src/domain/pace.ts';
import type { Charge } from '../../src/store/store.ts';
import { generatedCombinations } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges } from '../fixtures/run-charges.ts';
import { WRONG_TYPES, type WrongValue, wrongBytes } from '../fixtures/wrong-values.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;
const LENGTHS = generatedCombinations(Array.from({ length: 2_048 }, (_, index) => 1 + index));

test('bytes of every length up to 2 KB and every type: the owner is reported, and counted from the next charge on', async () => {
  const prefix = uniquePrefix();
  const bucket = (name: string) => ({ key: `${prefix}:1:{o}:${name}`, limit: 1_000_000, windowSeconds: 60 });
  const values: WrongValue[] = [...WRONG_TYPES];
  for (const length of LENGTHS) values.push(...wrongBytes(length));
  let others = 0;
  for (const { name, reason, put } of values) {
    await put(client, bucket('wrong').key);
    const wrong: Charge = { buckets: [bucket('organization'), bucket('wrong')], cost: 2 };
    const other: Charge = { buckets: [bucket('organization')], cost: 1 };
    const decisions = await runCharges(client, [other, wrong, other, wrong], { nowUs: START_US });
    const admitted = (...spent: number[]) => ({
      outcome: 'admitted',
      buckets: spent.map((points) => ({ remaining: 1_000_000 - points })),
    });
    expect([name, ...decisions]).toMatchObject([
      name,
      admitted(others + 1),
      { outcome: 'uncounted', reason },
      admitted(others + 2),
      admitted(others + 4, 2),
    ]);
    others += 4;
  }
});

test('bytes of every length and every type in a key of slots: the same', async () => {
  const prefix = uniquePrefix();
  const slots = (name: string) => ({
    key: `${prefix}:1:{o}:${name}.slots:a`,
    limit: 100,
    windowSeconds: 0,
    counts: 'concurrent' as const,
  });
  const values: WrongValue[] = [...WRONG_TYPES];
  for (const length of LENGTHS) {
    // Leases that have ended do not count, so their values do not matter.
    values.push(...wrongBytes(length).filter(({ name }) => length % 33 !== 0 || / (255|text)$/.test(name)));
  }
  const wrong = { buckets: [slots('wrong')], cost: 1 };
  const both = { buckets: [slots('other'), slots('wrong')], cost: 1 };
  for (const { name, reason, put } of values) {
    await put(client, slots('wrong').key);
    const decisions = await runCharges(client, [wrong, both, both], { nowUs: START_US });
    expect([name, ...decisions]).toMatchObject([
      name,
      { outcome: 'uncounted', reason },
      { outcome: 'admitted', buckets: [{ remaining: 99 }, { remaining: 99 }] },
      { outcome: 'admitted', buckets: [{ remaining: 98 }, { remaining: 98 }] },
    ]);
    await client.del(slots('other').key);
  }
});

/** A value of a bucket in the format of lua/README.md. The newest entry comes first. */
function packed(total: number, ...entries: readonly (readonly [atUs: number, points: number])[]): Buffer {
  const bytes = Buffer.alloc(4 + 11 * entries.length);
  bytes.writeUInt32BE(total, 0);
  for (const [index, [atUs, points]] of entries.entries()) {
    bytes.writeUIntBE(Math.floor(atUs / 2 ** 32), 4 + 11 * index, 3);
    bytes.writeUInt32BE(atUs % 2 ** 32, 7 + 11 * index);
    bytes.writeUInt32BE(points, 11 + 11 * index);
  }
  return bytes;
}

const WINDOW_US = 60 * US_PER_SECOND;
const OLD_US = START_US - WINDOW_US / 2;

test.each([
  ['a total without entries', packed(50, [START_US, 3])],
  ['a total below the newest entry', packed(2, [START_US, 3])],
  ['no points in the newest entry', packed(0, [START_US, 0])],
  ['an entry that the total lacks', packed(3, [START_US, 3], [OLD_US, 4])],
  ['an expired entry that the total lacks', packed(7, [START_US, 3], [START_US - WINDOW_US, 4], [OLD_US, 4])],
  ['an entry later than the newest', packed(7, [OLD_US, 3], [START_US, 4])],
  ['that, in the future', packed(7, [START_US + 2 * WINDOW_US, 3], [START_US + 3 * WINDOW_US, 4])],
  ['a time that no clock has', packed(3, [2 ** 53 + 2 ** 20, 3])],
])('a value that has the length of a bucket, and %s', async (_what, value) => {
  const key = `${uniquePrefix()}:1:{o}:account-read:a`;
  const charge = { buckets: [{ key, limit: 100, windowSeconds: 60 }], cost: 1 };
  await client.set(key, value);
  expect(await runCharges(client, [charge], { isSpending: false, nowUs: START_US })).toMatchObject([
    { outcome: 'uncounted', reason: 'wrongvalue' },
  ]);
  expect(await client.getBuffer(key)).toEqual(value);
  expect(await runCharges(client, [charge, charge], { nowUs: START_US })).toMatchObject([
    { outcome: 'uncounted', reason: 'wrongvalue' },
    { outcome: 'admitted', buckets: [{ remaining: 99 }] },
  ]);
});

test('what replaces a wrong value lives as long as any, and nothing is left of it where no charge follows', async () => {
  const prefix = uniquePrefix();
  const points = { key: `${prefix}:1:{o}:account-read:a`, limit: 100, windowSeconds: 60 };
  const slots = {
    key: `${prefix}:1:{o}:f.slots:a`,
    limit: 9,
    windowSeconds: 0,
    counts: 'concurrent' as const,
  };
  for (const bucket of [points, slots]) {
    await client.rpush(bucket.key, 'foreign');
    expect(await runCharges(client, [{ buckets: [bucket], cost: 1 }])).toMatchObject([
      { reason: 'wrongtype' },
    ]);
  }
  await expect.poll(() => client.exists(points.key)).toBe(0);
  expect(await client.strlen(slots.key)).toBe(33);
  await client.set(points.key, 'foreign');
  await runCharges(
    client,
    [1, 1].map((cost) => ({ buckets: [points], cost })),
  );
  for (const [key, lifeMs] of [
    [points.key, 90_000],
    [slots.key, pace.slotKeyMs],
  ] as const) {
    const leftMs = await client.pttl(key);
    expect(leftMs).toBeGreaterThan(lifeMs / 2);
    expect(leftMs).toBeLessThanOrEqual(lifeMs);
  }
});
