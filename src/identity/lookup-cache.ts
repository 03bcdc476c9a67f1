import { LRUCache } from 'lru-cache';
import type { Answer, Lookup } from './identity.ts';

/** The result of loading a key, and how long to cache it. Times are Unix time. */
export type LoadedKey<T> =
  | {
      readonly value: T;
      /** Until then it is not loaded again. */
      readonly freshUntilMs: number;
      /** Until then it is used while loading is unavailable. At least `freshUntilMs`. */
      readonly usableUntilMs: number;
    }
  | { readonly value: undefined; readonly freshUntilMs: number }
  | 'unavailable';

/**
 * Caches values and misses separately, so that a flood of made-up keys does not evict real ones. Concurrent lookups of a key
 * share one load. While loading is unavailable, cached values are used longer.
 */
export class LookupCache<T extends object, I> {
  readonly #load: (input: I, key: string) => Promise<LoadedKey<T>>;
  readonly #nowMs: () => number;
  readonly #known: LRUCache<string, { readonly value: T; readonly usableUntilMs: number }>;
  /** Misses and loads in progress. A timer removes a miss that expires, even if it is never looked up again. */
  readonly #misses: LRUCache<string, { readonly answer: Answer<T> }, { readonly input: I }>;

  /**
   * @param maxKeys maximum number of cached values, and of cached misses. Evicts the least recently used value or miss.
   * @param load loads the value for `input`; must not reject
   */
  constructor(
    maxKeys: number,
    load: (input: I, key: string) => Promise<LoadedKey<T>>,
    nowMs: () => number = Date.now,
  ) {
    this.#load = load;
    this.#nowMs = nowMs;
    // With `max`, lists of that length would be allocated at once, and cleared whenever a cache becomes empty.
    const limits = { maxSize: maxKeys, sizeCalculation: () => 1 };
    const clock = { ttl: 1, ttlResolution: 0, perf: { now: nowMs } };
    this.#known = new LRUCache({ ...limits, ...clock, noDeleteOnStaleGet: true });
    this.#misses = new LRUCache<string, { readonly answer: Answer<T> }, { readonly input: I }>({
      ...limits,
      ...clock,
      ttlAutopurge: true,
      // A load whose place is needed, or whose value is forgotten, still answers the lookups that wait for it.
      ignoreFetchAbort: true,
      fetchMethod: async (key, _expired, { context, options }) => {
        const loaded = await this.#load(context.input, key);
        const isMiss = loaded !== 'unavailable' && loaded.value === undefined;
        options.ttl = this.#ttlUntil(isMiss ? loaded.freshUntilMs : 0);
        return { answer: this.#keep(key, loaded) };
      },
    });
  }

  /** The number of cached values, misses and loads in progress. */
  get size(): number {
    return this.#known.size + this.#misses.size;
  }

  /** The value of a key. Loads `input` if the cached value is missing or no longer fresh. */
  get(key: string, input: I): Lookup<T> {
    const known = this.#known.get(key);
    if (known !== undefined) return known.value;
    if (this.#misses.get(key) !== undefined) return undefined;
    // A load in progress does not expire.
    return this.#misses.fetch(key, { context: { input }, ttl: 0 }).then((loaded) => loaded?.answer);
  }

  /** Removes the value of a key if the predicate matches it. Later lookups do not wait for a load in progress. */
  forget(key: string, isGone: (value: T) => boolean): void {
    const known = this.#known.peek(key, { allowStale: true });
    if (known === undefined || !isGone(known.value)) return;
    this.#known.delete(key);
    this.#misses.delete(key);
  }

  #keep(key: string, loaded: LoadedKey<T>): Answer<T> {
    if (loaded === 'unavailable') {
      const known = this.#known.peek(key, { allowStale: true });
      return known !== undefined && this.#nowMs() < known.usableUntilMs ? known.value : 'unavailable';
    }
    if ('usableUntilMs' in loaded) this.#known.set(key, loaded, { ttl: this.#ttlUntil(loaded.freshUntilMs) });
    else this.#known.delete(key);
    return loaded.value;
  }

  /** An entry is stale once it is older than its `ttl`, so a negative one is stale at once. Zero would never expire. */
  #ttlUntil(untilMs: number): number {
    const ttl = untilMs - this.#nowMs() - 1;
    return ttl > 0 ? ttl : -1;
  }
}
