/** What lua/settle.lua does with the clock of Redis, the lives of keys, and values that no release has written. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { calendarOf } from '../../src/domain/limits/calendar.ts';
import { SLOTS_ENDING, settledKey } from '../../src/store/keys.ts';
import { PeriodClock } from '../../src/store/redis/period-clock.ts';
import { withScripts } from '../../src/store/redis/scripts.ts';
import { sendSettlements } from '../../src/store/redis/send-settlements.ts';
import { type BucketCharge, type Charge, recordedLimit, type Settlement } from '../../src/store/store.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges, TEST_LIFE_MS } from '../fixtures/run-charges.ts';
import { WRONG_TYPES, wrongBytes } from '../fixtures/wrong-values.ts';
import { bytesOfEntries } from '../simulation/settled-values.ts';

const client = withScripts(new Redis(sharedRedisUrl()));
afterAll(() => client.disconnect());

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;
const LIFE = { markedMs: 1_000, lifeMs: undefined };
let ids = 0;

function bucketOf(name: string, changes: Partial<BucketCharge> = {}): BucketCharge {
  return { key: `${uniquePrefix()}:1:{o}:${name}:o`, limit: 100, windowSeconds: 10, ...changes };
}

async function charged(charge: Charge, nowUs?: number) {
  const [made] = await runCharges(client, [charge], nowUs === undefined ? {} : { nowUs, lifeMs: undefined });
  if (made?.outcome !== 'admitted') throw new Error('was not admitted');
  return { charge, chargedAtUs: made.chargedAtUs, refundsRequests: false };
}

const settlementOf = (made: Omit<Settlement, 'id' | 'cost'>, cost: number) => ({
  ...made,
  cost,
  id: `s-${ids++}`,
});

test('points are added as of the time of Redis', async () => {
  const bucket = bucketOf('tokens', { windowSeconds: 600 });
  const made = await charged({ buckets: [bucket], cost: 5 });
  const [settled] = await sendSettlements(client, [settlementOf(made, 9)], { markedMs: 1_000 });
  expect(settled).toMatchObject({
    outcome: 'settled',
    buckets: [{ remaining: 91, resetAfterUs: 600 * US_PER_SECOND }],
  });
});

test('what was settled before is settled for the call that did it, and for no other, also after the end', async () => {
  const bucket = bucketOf('tokens');
  const made = await charged({ buckets: [bucket], cost: 50 }, START_US);
  const settlement = { ...settlementOf(made, 40), endsAtUs: START_US + US_PER_SECOND };
  const outcomeOf = async (nonce: string | undefined, afterUs = 0, one = settlement) => {
    const options = { ...LIFE, nowUs: START_US + afterUs, nonces: nonce === undefined ? undefined : [nonce] };
    const [settled] = await sendSettlements(client, [one], options);
    return settled?.outcome;
  };
  expect(await outcomeOf('a-Nonce_1')).toBe('settled');
  const mark = settledKey(bucket.key, settlement.id);
  expect(await client.getrange(mark, 0, 0)).toBe('1');
  for (const afterUs of [0, 2 * US_PER_SECOND]) {
    expect(await outcomeOf('a-Nonce_1', afterUs)).toBe('settled');
    expect(await outcomeOf('a-Nonce_2', afterUs)).toBe('already');
    expect(await outcomeOf('a-Nonce_', afterUs)).toBe('already');
    expect(await outcomeOf(undefined, afterUs)).toBe('already');
  }
  // Settled without a nonce.
  await client.set(mark, '1');
  expect(await outcomeOf('a-Nonce_1')).toBe('already');
  const peek = { buckets: [bucket], cost: 1 };
  expect(await runCharges(client, [peek], { nowUs: START_US, isSpending: false })).toMatchObject([
    { buckets: [{ remaining: 60 }] },
  ]);
  expect(await outcomeOf('a-Nonce_3', 2 * US_PER_SECOND, { ...settlement, id: 'late' })).toBe('ended');
});

test('settlements of a call free the slots of their own charges', async () => {
  const owners = ['first', 'second', 'third'].map((name) => {
    const slots = bucketOf(`${name}${SLOTS_ENDING}`, { limit: 5, windowSeconds: 0, counts: 'concurrent' });
    return { tokens: bucketOf(name), slots };
  });
  const made = [];
  for (const { tokens, slots } of owners)
    made.push(await charged({ buckets: [tokens, slots], cost: 10, heldMs: 60_000 }, START_US));
  const options = { ...LIFE, nowUs: START_US };
  await sendSettlements(
    client,
    made.map((one) => settlementOf(one, 4)),
    options,
  );
  for (const { tokens, slots } of owners) {
    const peeks = [tokens, slots].map((bucket) => ({ buckets: [bucket], cost: 1 }));
    const decisions = await runCharges(client, peeks, { nowUs: START_US, isSpending: false });
    expect(decisions).toMatchObject([{ buckets: [{ remaining: 96 }] }, { buckets: [{ remaining: 5 }] }]);
  }
});

test('a key lives until its last charge has expired for half a window, or for as long as it had', async () => {
  const bucket = bucketOf('tokens');
  const charge = { buckets: [bucket], cost: 5 };
  const lifeMs = async () => Math.ceil((await client.pttl(bucket.key)) / 1_000);
  const at = (afterS: number) => ({ ...LIFE, nowUs: START_US + afterS * US_PER_SECOND });
  const first = await charged(charge, START_US);
  await client.pexpire(bucket.key, 3_000);
  await sendSettlements(client, [settlementOf(first, 7)], at(1));
  expect(await lifeMs()).toBe(15);
  const second = await charged(charge, START_US + 4 * US_PER_SECOND);
  await client.pexpire(bucket.key, 3_000);
  // The last one is now of the time of 1 second.
  await sendSettlements(client, [settlementOf(second, 0)], at(5));
  expect(await lifeMs()).toBe(11);
  const third = await charged(charge, START_US + 6 * US_PER_SECOND);
  await client.pexpire(bucket.key, 12_000);
  await sendSettlements(client, [settlementOf(third, 0)], at(7));
  expect(await lifeMs()).toBe(12);
});

test('a key without a time to live whose points have expired is not kept', async () => {
  const bucket = bucketOf('tokens');
  const charge = { buckets: [bucket], cost: 5 };
  await charged(charge, START_US);
  const second = await charged(charge, START_US + 2 * US_PER_SECOND);
  const third = await charged(charge, START_US + 8 * US_PER_SECOND);
  await client.persist(bucket.key);
  const nowUs = START_US + 17.5 * US_PER_SECOND;
  await sendSettlements(client, [settlementOf(third, 0)], { ...LIFE, nowUs });
  await expect.poll(() => client.exists(bucket.key)).toBe(0);
  expect(second.chargedAtUs).toBe(START_US + 2 * US_PER_SECOND);
});

test('an entry without points is removed, whichever it is', async () => {
  const bucket = bucketOf('tokens');
  const made = [];
  for (const second of [0, 1, 2])
    made.push(await charged({ buckets: [bucket], cost: 5 }, START_US + second * US_PER_SECOND));
  const nowUs = START_US + 3 * US_PER_SECOND;
  const bytes = [];
  for (const one of [made[1], made[2], made[0]]) {
    if (one !== undefined) await sendSettlements(client, [settlementOf(one, 0)], { ...LIFE, nowUs });
    bytes.push(await client.strlen(bucket.key));
    await expect.poll(() => client.exists(bucket.key)).toBe(bytes.length < 3 ? 1 : 0);
  }
  expect(bytes.slice(0, 2)).toEqual([26, 15]);
});

test('expired entries that no charge drops do not fill a bucket, and count for a longer window until the last of them expires', async () => {
  const bucket = { ...bucketOf('tokens'), limit: 10_000 };
  const longer = { buckets: [{ ...bucket, windowSeconds: 60 }], cost: 1 };
  const made = { charge: { buckets: [bucket], cost: 1 }, chargedAtUs: START_US, refundsRequests: false };
  const [newest, lastUs] = [{ atUs: START_US, points: 7 }, START_US - 20 * US_PER_SECOND];
  const usedAt = async (nowUs: number) => {
    const [decision] = await runCharges(client, [longer], { nowUs, isSpending: false });
    return decision?.outcome === 'admitted' ? 10_000 - (decision.buckets[0]?.remaining ?? 0) : undefined;
  };
  for (const [expired, kept] of [
    [600, 600],
    [601, 1],
  ] as const) {
    const entries = Array.from({ length: expired }, (_, index) => ({
      atUs: lastUs - (expired - 1 - index) * 1_000,
      points: 2,
    }));
    await client.set(bucket.key, bytesOfEntries([newest, ...entries]));
    const nowUs = START_US + US_PER_SECOND;
    const [settled] = await sendSettlements(client, [settlementOf(made, 6)], { ...LIFE, nowUs });
    expect(settled).toMatchObject({ outcome: 'settled', buckets: [{ remaining: 10_000 - 12 }] });
    expect(await client.strlen(bucket.key)).toBe(15 + 11 * (kept + 1));
    const end = lastUs + 60 * US_PER_SECOND;
    expect([await usedAt(nowUs), await usedAt(end - 1), await usedAt(end)]).toEqual([
      12 + 2 * expired,
      kept === 1 ? 12 + 2 * expired : 14,
      12,
    ]);
  }
});

test('what Redis has lost takes nothing from a later charge of the same time', async () => {
  const bucket = bucketOf('tokens');
  const lost = await charged({ buckets: [bucket], cost: 5 }, START_US);
  await client.del(bucket.key);
  await charged({ buckets: [bucket], cost: 3 }, START_US);
  const [settled] = await sendSettlements(client, [settlementOf(lost, 0)], { ...LIFE, nowUs: START_US });
  expect(settled).toMatchObject({ outcome: 'settled', buckets: [{ remaining: 97 }] });
});

test('a bucket of a period lives for 15 minutes after it', async () => {
  const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
  const bucket = bucketOf('tokens', { calendar });
  const made = await charged({ buckets: [bucket], cost: 50 }, START_US);
  await client.pexpire(bucket.key, 3_000);
  const leftMs = calendar.at(START_US / 1_000).endMs - START_US / 1_000;
  await sendSettlements(client, [settlementOf(made, 40)], { ...LIFE, nowUs: START_US });
  expect((await client.pttl(bucket.key)) / 1_000).toBeCloseTo((leftMs + 900_000) / 1_000, 0);
});

test('values of every type and length, and headers that contradict their entries, are left to the next charge', async () => {
  const [wrong, other] = [bucketOf('wrong'), bucketOf('other')];
  const charge = { buckets: [wrong, other], cost: 10 };
  const entry = (atUs: number, points: number) => [...sevenBytes(atUs), ...fourBytes(points)];
  const header = (total: number, points: number) => [...fourBytes(total), ...entry(START_US, points)];
  const bytes = (...all: readonly number[][]) => Buffer.from(all.flat());
  const early = START_US - US_PER_SECOND;
  const contradictions = [
    bytes(header(5, 0)),
    bytes(header(5, 9)),
    bytes(header(9, 5)),
    bytes(header(5, 5), entry(early, 1)),
    bytes(header(9, 5), entry(START_US + 1, 4)),
    bytes(header(9, 5), entry(early, 0)),
    // An expired entry has more points than there are.
    bytes(header(9, 5), entry(START_US - 20 * US_PER_SECOND, 50)),
  ];
  const values = [
    ...WRONG_TYPES.map(({ put }) => put),
    ...[1, 2, 14, 16, 25, 27].flatMap((length) => wrongBytes(length).map(({ put }) => put)),
    ...contradictions.map((value) => async (redis: Redis, key: string) => {
      await redis.set(key, value);
    }),
  ];
  for (const put of values) {
    await client.del(wrong.key, other.key);
    await runCharges(client, [{ buckets: [other], cost: 10 }], { nowUs: START_US });
    await put(client, wrong.key);
    const before = await client.dump(wrong.key);
    for (const cost of [4, 30]) {
      const made = { charge, chargedAtUs: START_US, refundsRequests: false };
      const options = { markedMs: 1_000, nowUs: START_US, lifeMs: TEST_LIFE_MS };
      const [settled] = await sendSettlements(client, [settlementOf(made, cost)], options);
      expect(settled).toMatchObject({ outcome: 'settled', buckets: [undefined, { overPoints: 0 }] });
    }
    expect(await client.dump(wrong.key)).toBe(before);
  }
});

test.each([3, -3])(
  'a clock that differs by %i hours is set, and the period of Redis is settled',
  async (hours) => {
    const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
    const startMs = START_US / 1_000;
    const clock = new PeriodClock(() => startMs + hours * 3_600_000);
    const charges = [50, 30].map((cost) => ({ buckets: [bucketOf(`tokens-${cost}`, { calendar })], cost }));
    const made = await Promise.all(charges.map((charge) => charged(charge, START_US)));
    const settlements = made.map((one) => settlementOf(one, 40));
    const settled = await sendSettlements(client, settlements, { ...LIFE, nowUs: START_US, clock });
    expect(settled).toMatchObject([
      { outcome: 'settled', buckets: [{ remaining: 60 }] },
      { outcome: 'settled', buckets: [{ remaining: 60 }] },
    ]);
    expect(clock.nowMs()).toBe(Math.floor(startMs));
  },
);

test('a value that is none of a period changes nothing', async () => {
  const calendar = calendarOf({ unit: 'hour', timeZone: 'UTC', startsOn: 1 });
  const bucket = bucketOf('tokens', { calendar });
  const charge = { buckets: [bucket], cost: 50 };
  const made = await charged(charge, START_US);
  const settle = async () => {
    const [settled] = await sendSettlements(client, [settlementOf(made, 40)], { ...LIFE, nowUs: START_US });
    return settled && 'buckets' in settled ? settled.buckets[0] : 'not settled';
  };
  expect(await settle()).toMatchObject({ remaining: 60 });
  const endS = calendar.at(START_US / 1_000).endMs / 1_000;
  const count = (total: number, atS: number) => Buffer.from([...sevenBytes(total), ...fiveBytes(atS)]);
  for (const value of [count(1, endS + 3_600), count(2 ** 53 + 2, START_US / US_PER_SECOND), 'short']) {
    await client.set(bucket.key, value);
    expect(await settle()).toBeUndefined();
  }
  await client.del(bucket.key);
  await client.lpush(bucket.key, 'a list');
  expect(await settle()).toBeUndefined();
});

const calendar = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn: 1 });

test.each([
  ['both buckets of the first', ['window-1', 'period-1'], '* lost id', [true, false, true, false]],
  [
    'both buckets of the second, and a period of the fourth',
    ['window-2', 'period-2', 'period-3'],
    '* lost id',
    [false, true, true, true],
  ],
  ['only the windows', ['window-1', 'window-2'], '* lost id', [false, false, true, false]],
  ['only the periods', ['period-1', 'period-2'], '* lost id', [false, false, true, false]],
  [
    'both buckets of the first, but in another Redis',
    ['window-1', 'period-1'],
    '* lost other',
    [false, false, true, false],
  ],
  [
    'both buckets of the first, but by an earlier recovery',
    ['window-1', 'period-1'],
    '* next id',
    [false, false, true, false],
  ],
  ['none, before a recovery begins', ['window-1', 'period-1'], '', [false, false, true, false]],
  ['everything, after the recovery', [], 'id', [true, true, true, true]],
])(
  'a settlement is applied if all of its durable buckets are back. Back are: %s',
  async (_what, back, found, expected) => {
    const prefix = uniquePrefix();
    const bucket = (name: string, changes: Partial<BucketCharge> = {}): BucketCharge => {
      const key = `${prefix}:1:{o}:${name}:o`;
      const record = recordedLimit({ scope: 'account', name, windowSeconds: 60 });
      return { key, limit: 100, windowSeconds: 60, record, owner: 'o', ...changes };
    };
    const charges = [
      { buckets: [bucket('window-1'), bucket('period-1', { calendar })], cost: 50 },
      { buckets: [bucket('window-2'), bucket('period-2', { calendar })], cost: 50 },
      { buckets: [bucket('brief', { record: undefined })], cost: 50 },
      { buckets: [bucket('window-3', { record: undefined }), bucket('period-3', { calendar })], cost: 50 },
    ];
    const made = [];
    for (const charge of charges) made.push(await charged(charge, START_US));
    const mark = { key: `${prefix}:1:{o}:journal`, expected: 'id' };
    await client.set(mark.key, found);
    for (const name of back) await client.sadd(`${mark.key}:lost`, bucket(name).key);
    const settled = await sendSettlements(
      client,
      made.map((one) => settlementOf(one, 40)),
      { ...LIFE, nowUs: START_US, mark },
    );
    const leftOf = async (charge: Charge) => {
      const [decision] = await runCharges(client, [charge], { nowUs: START_US, isSpending: false });
      return decision?.outcome === 'admitted' ? decision.buckets.map((state) => state?.remaining) : [];
    };
    for (const [index, charge] of charges.entries()) {
      const isApplied = expected[index] === true;
      expect(settled[index] !== undefined).toBe(isApplied);
      expect(await leftOf({ ...charge, cost: 1 })).toEqual(charge.buckets.map(() => (isApplied ? 60 : 50)));
    }
  },
);

test.each([
  ['is applied where the mark has the id of Redis', '', (id: string) => id, true],
  ['is not applied where it has the id of another Redis', '', () => 'other', false],
  ['is applied where nobody may ask for the id', '-info', () => '-', true],
  ['is not applied where it has an id that nobody may ask for', '-info', (id: string) => id, false],
])('a settlement whose sender does not know Redis yet %s', async (_what, right, markOf, isApplied) => {
  const name = `settling-${randomUUID()}`;
  await client.acl('SETUSER', name, 'on', '>secret', '~*', '&*', '+@all', ...(right === '' ? [] : [right]));
  onTestFinished(async () => void (await client.acl('DELUSER', name)));
  const user = withScripts(client.duplicate({ username: name, password: 'secret', enableReadyCheck: false }));
  onTestFinished(() => user.disconnect());
  const record = recordedLimit({ scope: 'account', name: 'minute', windowSeconds: 60 });
  const bucket = bucketOf('minute', { windowSeconds: 60, record, owner: 'o' });
  const made = await charged({ buckets: [bucket], cost: 50 }, START_US);
  const [, id = ''] = /master_replid:(\w+)/.exec(await client.info('replication')) ?? [];
  const mark = { key: `${bucket.key}:journal`, expected: '?' };
  await client.set(mark.key, markOf(id));
  const [settled] = await sendSettlements(user, [settlementOf(made, 40)], { ...LIFE, nowUs: START_US, mark });
  expect(settled?.outcome).toBe(isApplied ? 'settled' : undefined);
});

test.each([
  ['is', 'as of the end of its minute', 60, 50, true, 90],
  ['is', 'two minutes later', 120, 50, true, 90],
  ['is', 'with no more than is given back', 60, 40, true, 100],
  ['is not', 'with less than is given back', 60, 39, true, 61],
  ['is not', 'later than any recovery puts it back', 120.1, 50, true, 50],
  ['is not', 'that is not durable', 60, 50, false, 50],
])('a charge %s given back to an entry %s', async (_is, _entry, afterS, points, isDurable, left) => {
  const record = recordedLimit({ scope: 'account', name: 'hour', windowSeconds: 3_600 });
  const durable = { record, owner: 'o' };
  const bucket = bucketOf('hour', { windowSeconds: 3_600, ...durable });
  const other = bucketOf('other', durable);
  const mark = { key: `${bucket.key}:journal`, expected: 'id' };
  await client.set(mark.key, 'id');
  const atUs = START_US + afterS * US_PER_SECOND;
  await client.set(bucket.key, bytesOfEntries([{ atUs, points }]));
  const buckets = [isDurable ? bucket : { ...bucket, record: undefined }, other];
  const made = { charge: { buckets, cost: 50 }, chargedAtUs: START_US, refundsRequests: false };
  const nowUs = START_US + 600 * US_PER_SECOND;
  const [settled] = await sendSettlements(client, [settlementOf(made, 10)], { ...LIFE, nowUs, mark });
  expect(settled?.outcome).toBe('settled');
  const [peeked] = await runCharges(client, [{ buckets: [bucket], cost: 1 }], { nowUs, isSpending: false });
  expect(peeked).toMatchObject({ buckets: [{ remaining: left }] });
});

const bytesOf = (value: number, count: number) =>
  Array.from({ length: count }, (_, index) => Math.floor(value / 256 ** (count - 1 - index)) % 256);
const fourBytes = (value: number) => bytesOf(value, 4);
const fiveBytes = (value: number) => bytesOf(value, 5);
const sevenBytes = (value: number) => bytesOf(value, 7);
