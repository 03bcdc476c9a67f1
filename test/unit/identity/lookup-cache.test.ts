import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type LoadedKey, LookupCache } from '../../../src/identity/lookup-cache.ts';

interface Thing {
  readonly name: string;
}

/** A load that answers when it is told to. */
interface Held {
  readonly input: string;
  answer(loaded: LoadedKey<Thing>): void;
}

let nowMs: number;
let loads: string[];
/** What the next load of an input comes to; by default found, and fresh for 100 ms. */
let answers: Map<string, LoadedKey<Thing>>;

beforeEach(() => {
  nowMs = 1_000;
  loads = [];
  answers = new Map();
});

function found(name: string, freshMs = 100, outageMs = 0): LoadedKey<Thing> {
  return { value: { name }, freshForMs: freshMs, usableForMs: freshMs + outageMs };
}

function cacheOf(maxKeys = 100): LookupCache<Thing, string> {
  return new LookupCache<Thing, string>(
    maxKeys,
    async (input) => {
      loads.push(input);
      return answers.get(input) ?? found(input);
    },
    () => nowMs,
  );
}

const get = (cache: LookupCache<Thing, string>, key: string) => cache.get(key, key);

describe('what was found', () => {
  it('is answered at once, without a promise, until it is no longer fresh', async () => {
    const cache = cacheOf();
    await get(cache, 'a');
    nowMs += 99;
    expect(get(cache, 'a')).toEqual({ name: 'a' });
    nowMs += 1;
    expect(get(cache, 'a')).toBeInstanceOf(Promise);
    expect(loads).toEqual(['a', 'a']);
  });

  it('is used while loading is unavailable, until it expires', async () => {
    const cache = cacheOf();
    answers.set('a', found('a', 100, 50));
    await get(cache, 'a');
    answers.set('a', 'unavailable');
    nowMs += 149;
    expect(await get(cache, 'a')).toEqual({ name: 'a' });
    nowMs += 1;
    expect(await get(cache, 'a')).toBe('unavailable');
  });

  it('is dropped when it is found no more', async () => {
    const cache = cacheOf();
    answers.set('a', found('a', 100, 1000));
    await get(cache, 'a');
    nowMs += 100;
    answers.set('a', { miss: undefined, freshForMs: 0 });
    expect(await get(cache, 'a')).toBeUndefined();
    answers.set('a', 'unavailable');
    expect(await get(cache, 'a')).toBe('unavailable');
  });
});

it('concurrent lookups of a key share one load', async () => {
  const cache = cacheOf();
  const many = await Promise.all(Array.from({ length: 50 }, () => get(cache, 'a')));
  expect(new Set(many)).toEqual(new Set([{ name: 'a' }]));
  expect(loads).toEqual(['a']);
});

it('a miss is not loaded again until it expires', async () => {
  const cache = cacheOf();
  answers.set('a', { miss: undefined, freshForMs: 10 });
  await get(cache, 'a');
  nowMs += 9;
  expect(get(cache, 'a')).toBeUndefined();
  answers.delete('a');
  nowMs += 1;
  expect(await get(cache, 'a')).toEqual({ name: 'a' });
});

it('a flood of made-up keys evicts no real one', async () => {
  const cache = cacheOf(10);
  await get(cache, 'real');
  for (let index = 0; index < 1000; index++) {
    answers.set(`made-up-${index}`, { miss: undefined, freshForMs: 1000 });
    await get(cache, `made-up-${index}`);
  }
  expect(get(cache, 'real')).toEqual({ name: 'real' });
});

it('the number of cached keys is limited', async () => {
  const cache = cacheOf(10);
  for (let index = 0; index < 11; index++) await get(cache, `k${index}`);
  expect(get(cache, 'k0')).toBeInstanceOf(Promise);
  expect(get(cache, 'k10')).toEqual({ name: 'k10' });
});

describe('what is forgotten', () => {
  it('is loaded again, and nothing else is', async () => {
    const cache = cacheOf();
    for (const key of ['b', 'c']) await get(cache, key);
    for (const key of ['b', 'c']) cache.forget(key, ({ name }) => name === 'b');
    expect(get(cache, 'b')).toBeInstanceOf(Promise);
    expect(get(cache, 'c')).toEqual({ name: 'c' });
  });
});

describe('a load in progress', () => {
  /** A cache whose loads end when the test says so. */
  function heldCache(maxKeys: number) {
    const held: Held[] = [];
    const cache = new LookupCache<Thing, string>(
      maxKeys,
      (input) => new Promise((answer) => held.push({ input, answer })),
      () => nowMs,
    );
    return { cache, held };
  }

  it('is shared for as long as it takes', async () => {
    const { cache, held } = heldCache(10);
    const first = get(cache, 'a');
    nowMs += 60_000;
    await new Promise((resolve) => setTimeout(resolve, 20));
    const second = get(cache, 'a');
    expect(held).toHaveLength(1);
    held[0]?.answer('unavailable');
    expect([await first, await second]).toEqual(['unavailable', 'unavailable']);
  });

  it('evicts no value, and answers even if its own place is needed', async () => {
    const { cache, held } = heldCache(10);
    const real = get(cache, 'real');
    held[0]?.answer(found('real'));
    await real;
    const lookups = Array.from({ length: 100 }, (_, index) => get(cache, `made-up-${index}`));
    expect(get(cache, 'real')).toEqual({ name: 'real' });
    for (const one of held.slice(1)) one.answer({ miss: undefined, freshForMs: 10 });
    expect(new Set(await Promise.all(lookups))).toEqual(new Set([undefined]));
    expect(cache.size).toBeLessThanOrEqual(11);
  });

  it('is not joined after its key was forgotten, and still answers', async () => {
    const { cache, held } = heldCache(10);
    const first = get(cache, 'a');
    held[0]?.answer(found('a'));
    await first;
    nowMs += 100;
    const before = get(cache, 'a');
    cache.forget('a', () => true);
    const after = get(cache, 'a');
    expect(held).toHaveLength(3);
    held[2]?.answer(found('new'));
    held[1]?.answer(found('old'));
    expect([await before, await after]).toEqual([{ name: 'old' }, { name: 'new' }]);
  });
});

describe('misses', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function missingCache(maxKeys: number): LookupCache<Thing, string> {
    return new LookupCache<Thing, string>(
      maxKeys,
      async (input) => {
        loads.push(input);
        return { miss: undefined, freshForMs: 10_000 };
      },
      // The fake `performance.now()` begins at 0, which lru-cache takes for no time at all.
      Date.now,
    );
  }

  it('are limited in number', async () => {
    const cache = missingCache(100);
    for (let index = 0; index < 1_000; index++) {
      await get(cache, `key-${index}`);
      expect(cache.size).toBeLessThanOrEqual(100);
    }
    expect([get(cache, 'key-900'), get(cache, 'key-999')]).toEqual([undefined, undefined]);
    expect(get(cache, 'key-899')).toBeInstanceOf(Promise);
  });

  it('are removed when they expire, even without another lookup', async () => {
    const cache = missingCache(100);
    for (let index = 0; index < 60; index++) {
      await get(cache, `key-${index}`);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(cache.size).toBe(60);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(cache.size).toBe(0);
  });

  it('get a new expiry when they are loaded again', async () => {
    const cache = missingCache(100);
    await get(cache, 'a');
    await vi.advanceTimersByTimeAsync(10_000);
    await get(cache, 'a');
    await vi.advanceTimersByTimeAsync(9_000);
    expect(get(cache, 'a')).toBeUndefined();
    expect(loads).toEqual(['a', 'a']);
  });
});
