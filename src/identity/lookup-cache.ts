import { LRUCache } from 'lru-cache';
import type { Answer, Lookup } from './identity.ts';
import { RefusedKeys } from './refused-keys.ts';

/** The result of loading a key, and how long to cache it. Times are Unix time. */
export type Loaded<T> =
  | {
      readonly value: T;
      /** Until then it is not loaded again. */
      readonly freshUntilMs: number;
      /** Until then it is used while loading is unavailable. At least `freshUntilMs`. */
      readonly usableUntilMs: number;
    }
  | { readonly value: undefined; readonly freshUntilMs: number }
  | 'unavailable';

type Known<T> = Extract<Loaded<T>, { readonly usableUntilMs: number }>;

export interface LookupCacheOptions<T, I> {
  /** Loads the value for `input`. Must not reject. */
  load(input: I, key: string): Promise<Loaded<T>>;
  /** Maximum number of cached values, and of cached misses. Evicts the least recently used value, or the oldest miss. */
  readonly maxKeys: number;
  readonly nowMs?: () => number;
}

/**
 * Caches values and misses separately, so that a flood of made-up keys does not evict real ones. Concurrent lookups of a key
 * share one load. While loading is unavailable, cached values are used longer.
 */
export class LookupCache<T extends object, I> {
  readonly #options: LookupCacheOptions<T, I>;
  readonly #nowMs: () => number;
  readonly #known: LRUCache<string, Known<T>>;
  readonly #unknown: RefusedKeys;
  readonly #pending = new Map<string, Promise<Answer<T>>>();

  constructor(options: LookupCacheOptions<T, I>) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#known = new LRUCache({ max: options.maxKeys });
    this.#unknown = new RefusedKeys({ maxKeys: options.maxKeys, nowMs: this.#nowMs });
  }

  /** The value of a key. Loads `input` if the cached value is missing or no longer fresh. */
  get(key: string, input: I): Lookup<T> {
    const known = this.#known.get(key);
    if (known === undefined) {
      if (this.#unknown.has(key)) return undefined;
    } else if (this.#nowMs() < known.freshUntilMs) {
      return known.value;
    }
    return this.#pending.get(key) ?? this.#begin(key, input);
  }

  /** Removes the value of a key if the predicate matches it. Later lookups do not wait for a load in progress. */
  forget(key: string, isGone: (value: T) => boolean): void {
    const known = this.#known.get(key);
    if (known === undefined || !isGone(known.value)) return;
    this.#known.delete(key);
    this.#pending.delete(key);
  }

  #begin(key: string, input: I): Promise<Answer<T>> {
    const answer = this.#load(key, input).finally(() => {
      if (this.#pending.get(key) === answer) this.#pending.delete(key);
    });
    this.#pending.set(key, answer);
    return answer;
  }

  async #load(key: string, input: I): Promise<Answer<T>> {
    const loaded = await this.#options.load(input, key);
    if (loaded === 'unavailable') {
      const known = this.#known.get(key);
      return known !== undefined && this.#nowMs() < known.usableUntilMs ? known.value : 'unavailable';
    }
    this.#keep(key, loaded);
    return loaded.value;
  }

  #keep(key: string, loaded: Exclude<Loaded<T>, 'unavailable'>): void {
    if ('usableUntilMs' in loaded) {
      this.#known.set(key, loaded);
      this.#unknown.delete(key);
    } else {
      this.#known.delete(key);
      if (loaded.freshUntilMs > this.#nowMs()) this.#unknown.add(key, loaded.freshUntilMs);
    }
  }
}
