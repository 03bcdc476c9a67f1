import { LRUCache } from 'lru-cache';
import type { Awaitable } from '../domain/awaitable.ts';

/** The result of loading a key, and for how long to cache it, from the end of the load on. */
export type LoadedKey<T, M = undefined> =
  | {
      readonly value: T;
      /** During this time it is not loaded again. */
      readonly freshForMs: number;
      /** During this time it is used while loading is unavailable. At least `freshForMs`. */
      readonly usableForMs: number;
    }
  | { readonly miss: M; readonly freshForMs: number }
  | 'unavailable';

/**
 * Caches values and misses separately, so that a flood of made-up keys does not evict real ones. Concurrent lookups of a key
 * share one load. While loading is unavailable, cached values are used longer.
 *
 * @template M what a lookup answers for a miss
 */
export class LookupCache<T extends object, I, M = undefined> {
  readonly #load: (input: I, key: string) => Promise<LoadedKey<T, M>>;
  readonly #nowMs: () => number;
  readonly #known: LRUCache<string, { readonly value: T; readonly usableUntilMs: number }>;
  /** Misses and loads in progress, and what they answer. A timer removes a miss that expires, even if it is never looked up again. */
  readonly #misses: LRUCache<string, { readonly answer: T | M | 'unavailable' }, { readonly input: I }>;

  /**
   * @param maxKeys maximum number of cached values, and of cached misses. Evicts the least recently used value or miss.
   * @param load loads the value for `input`; must not reject
   * @param nowMs a clock that is never set: what is cached would stay for hours if it were set back by hours
   */
  constructor(
    maxKeys: number,
    load: (input: I, key: string) => Promise<LoadedKey<T, M>>,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#load = load;
    this.#nowMs = nowMs;
    // With `max`, lists of that length would be allocated at once, and cleared whenever a cache becomes empty.
    const limits = { maxSize: maxKeys, sizeCalculation: () => 1 };
    const clock = { ttl: 1, ttlResolution: 0, perf: { now: nowMs } };
    this.#known = new LRUCache({ ...limits, ...clock, noDeleteOnStaleGet: true });
    this.#misses = new LRUCache({
      ...limits,
      ...clock,
      ttlAutopurge: true,
      // A load whose place is needed, or whose value is forgotten, still answers the lookups that wait for it.
      ignoreFetchAbort: true,
      fetchMethod: async (key, _expired, { context, options }) => {
        const loaded = await this.#load(context.input, key);
        const isMiss = loaded !== 'unavailable' && 'miss' in loaded;
        options.ttl = ttlOf(isMiss ? loaded.freshForMs : 0);
        return { answer: this.#keep(key, loaded) };
      },
    });
  }

  /** The number of cached values, misses and loads in progress. */
  get size(): number {
    return this.#known.size + this.#misses.size;
  }

  /** The value of a key. Loads `input` if the cached value is missing or no longer fresh. */
  get(key: string, input: I): Awaitable<T | M | 'unavailable'> {
    const known = this.#known.get(key);
    if (known !== undefined) return known.value;
    const missed = this.#misses.get(key);
    if (missed !== undefined) return missed.answer;
    // A load in progress does not expire.
    const loading = this.#misses.fetch(key, { context: { input }, ttl: 0 });
    return loading.then((loaded) => (loaded === undefined ? 'unavailable' : loaded.answer));
  }

  /** Removes the value of a key if the predicate matches it. Later lookups do not wait for a load in progress. */
  forget(key: string, isGone: (value: T) => boolean): void {
    const known = this.#known.peek(key, { allowStale: true });
    if (known === undefined || !isGone(known.value)) return;
    this.#known.delete(key);
    this.#misses.delete(key);
  }

  #keep(key: string, loaded: LoadedKey<T, M>): T | M | 'unavailable' {
    if (loaded === 'unavailable') {
      const known = this.#known.peek(key, { allowStale: true });
      return known !== undefined && this.#nowMs() < known.usableUntilMs ? known.value : 'unavailable';
    }
    if ('miss' in loaded) {
      this.#known.delete(key);
      return loaded.miss;
    }
    const { value, freshForMs, usableForMs } = loaded;
    const usableUntilMs = this.#nowMs() + usableForMs;
    this.#known.set(key, { value, usableUntilMs }, { ttl: ttlOf(freshForMs) });
    return value;
  }
}

/** An entry is stale once it is older than its `ttl`, so a negative one is stale at once. Zero would never expire. */
function ttlOf(freshForMs: number): number {
  return freshForMs > 1 ? freshForMs - 1 : -1;
}
