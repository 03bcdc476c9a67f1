import { EventEmitter, once } from 'node:events';
import { Redis } from 'ioredis';
import type pg from 'pg';
import { afterAll, describe, expect, test, vi } from 'vitest';
import type { PresentCounts } from '../../../src/store/journal/journaled-counts.ts';
import { PuttingBack } from '../../../src/store/journal/putting-back.ts';
import { withScripts } from '../../../src/store/redis/scripts.ts';
import { WantedBuckets } from '../../../src/store/redis/wanted-buckets.ts';
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

describe('buckets that wait for a recovery', () => {
  const client = withScripts(new Redis(sharedRedisUrl()));
  afterAll(() => client.disconnect());

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
