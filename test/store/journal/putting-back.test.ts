import { EventEmitter, once } from 'node:events';
import { Redis } from 'ioredis';
import type pg from 'pg';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { calendarOf } from '../../../src/domain/limits/calendar.ts';
import type { PresentCounts } from '../../../src/store/journal/journaled-counts.ts';
import { PuttingBack } from '../../../src/store/journal/putting-back.ts';
import { withScripts } from '../../../src/store/redis/scripts.ts';
import { sendCharges } from '../../../src/store/redis/send-charges.ts';
import { sendSettlements } from '../../../src/store/redis/send-settlements.ts';
import { WantedBuckets } from '../../../src/store/redis/wanted-buckets.ts';
import { type BucketCharge, type Decision, recordedLimit } from '../../../src/store/store.ts';
import { sharedRedisUrl, uniquePrefix } from '../../fixtures/redis-url.ts';

const countsOf = (keys: readonly string[]): PresentCounts => ({
  keys,
  texts: keys.map((key) => `of ${key}`),
});

/** Reads a page, and a second one when all that is wanted is back. */
class Recovered {
  readonly put: string[] = [];
  readonly admitted: string[] = [];
  readonly #wanted: string[][];
  readonly #ended = new EventEmitter();
  readonly #end = once(this.#ended, 'end');

  constructor(wanted: string[][]) {
    this.#wanted = [...wanted];
  }

  async *present() {
    yield countsOf(['a', 'b']);
    await this.#end;
    yield countsOf(['c', 'd']);
  }

  async countsOf(keys: readonly string[]) {
    return countsOf(keys.filter((key) => key !== 'unknown'));
  }

  async putBack({ keys, texts }: PresentCounts) {
    expect(texts).toEqual(countsOf(keys).texts);
    this.put.push(keys.join());
    return { buckets: keys.length, points: 10 * keys.length };
  }

  async wanted() {
    const keys = this.#wanted.shift();
    if (keys === undefined) this.#ended.emit('end');
    return keys ?? [];
  }

  async admit(keys: readonly string[]) {
    this.admitted.push(keys.join());
  }
}

const CLIENT = {} as pg.PoolClient;

describe('buckets that are asked for', () => {
  test('are put back once, and before they count', async () => {
    const store = new Recovered([['c', 'unknown'], ['unknown'], ['c']]);
    const puttingBack = new PuttingBack(store, store);
    await puttingBack.all(CLIENT);
    expect([...store.put].sort()).toEqual(['a,b', 'c', 'd']);
    expect(store.put.indexOf('c')).toBeLessThan(store.put.indexOf('d'));
    expect(store.admitted).toEqual(['c,unknown']);
    expect(puttingBack.found).toEqual({ buckets: 4, points: 40 });
  });

  test('wait for the end if there are too many of them', async () => {
    const store = new Recovered([
      ['c', 'x'],
      ['y', 'd'],
    ]);
    await new PuttingBack(store, store, 3).all(CLIENT);
    expect(store.admitted).toEqual(['c,x', 'y']);
    expect(store.put).toContain('d');
  });

  test('and cannot be read have the whole recovery fail, and be tried again', async () => {
    const store = new Recovered([['c']]);
    const tables = { present: () => store.present(), countsOf: () => Promise.reject(new Error('away')) };
    const all = new PuttingBack(tables, store).all(CLIENT);
    void store.wanted();
    await expect(all).rejects.toThrow('away');
    expect(store.admitted).toEqual([]);
  });
});

const client = withScripts(new Redis(sharedRedisUrl()));
afterAll(() => client.disconnect());

describe('buckets that wait for a recovery', () => {
  test('are 10,000 at most, whoever asks, and are taken in the order in which they were asked for', async () => {
    const prefix = uniquePrefix();
    const key = `${prefix}:1:{journal}:wanted`;
    const sizes = vi.spyOn(client, 'zcard');
    for (let replica = 0; replica < 12; replica++) {
      const asking = new WantedBuckets(prefix);
      for (let bucket = 0; bucket < 1_500; bucket++) asking.want(`${100 * replica}:${bucket}`, client);
      await expect.poll(() => sizes.mock.results.length).toBe(replica + 1);
      await client.ping();
    }
    sizes.mockRestore();
    expect(await client.zcard(key)).toBe(10_000);
    expect(await client.pttl(key)).toBeGreaterThan(0);
    const wanted = new WantedBuckets(prefix);
    for (let replica = 0; replica < 10; replica++)
      expect(new Set((await wanted.take(client)).map((bucket) => bucket.split(':')[0]))).toEqual(
        new Set([`${100 * replica}`]),
      );
    expect(await wanted.take(client)).toEqual([]);
  });
});

const ID = 'a1';
const MONTH = calendarOf({ unit: 'month', timeZone: 'UTC', startsOn: 1 });

test.each([
  ['all durable ones', 'r1', ID, ['day', 'month'], true],
  ['one more', 'r1', ID, ['minute', 'day', 'month'], true],
  ['no period', 'r1', ID, ['minute', 'day'], false],
  ['no window', 'r1', ID, ['minute', 'month'], false],
  ['none', 'r1', ID, [], false],
  ['those of another recovery', 'r2', ID, ['day', 'month'], false],
  ['those of another Redis', 'r1', 'a2', ['day', 'month'], false],
])('during a recovery, charges and settlements count if it has put back %s: %s %s %j', async (...row) => {
  const [, recovery, id, back, isCounting] = row;
  const prefix = uniquePrefix();
  const markKey = `${prefix}:1:{a}:journal`;
  const [minute, day, month] = ['minute', 'day', 'month'].map((name): BucketCharge => {
    const key = `${prefix}:1:{a}:${name}:a`;
    const windowSeconds = name === 'minute' ? 60 : 86_400;
    const calendar = name === 'month' ? MONTH : undefined;
    const record = recordedLimit({ scope: 'account', name, windowSeconds, calendar });
    return {
      key,
      limit: 10,
      windowSeconds,
      calendar,
      record: name === 'minute' ? undefined : record,
      owner: 'a',
    };
  }) as [BucketCharge, BucketCharge, BucketCharge];
  await client.set(markKey, `* ${recovery} ${id}`, 'EX', 60);
  await client.sadd(`${markKey}:r1`, 'other', ...back.map((name) => `${prefix}:1:{a}:${name}:a`));
  await client.expire(`${markKey}:r1`, 60);
  const mark = { key: markKey, expected: ID };
  // The other charge of the call needs no durable count.
  const charges = [
    { buckets: [minute, day, month], cost: 2 },
    { buckets: [minute], cost: 2 },
  ];
  const decisions = await new Promise<readonly Decision[]>((resolve, reject) => {
    sendCharges(client, charges, { isSpending: true, mark }, (error, made) =>
      error === undefined ? resolve(made) : reject(error),
    );
  });
  expect(decisions).toMatchObject([
    isCounting ? { outcome: 'admitted' } : { outcome: 'uncounted', reason: 'recovering' },
    { outcome: 'admitted' },
  ]);
  const settlements = charges.map((charge, index) => ({
    charge,
    chargedAtUs: undefined,
    id: `${index}`,
    cost: 3,
    refundsRequests: false,
  }));
  const settled = await sendSettlements(client, settlements, { markedMs: 1_000, mark });
  expect(settled.map((one) => one?.outcome)).toEqual([isCounting ? 'settled' : undefined, 'settled']);
  expect(await client.exists(day.key, month.key)).toBe(isCounting ? 2 : 0);
  expect(settled[1]).toMatchObject({ buckets: [{ remaining: isCounting ? 4 : 7 }] });
});
