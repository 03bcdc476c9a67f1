import { LRUCache } from 'lru-cache';
import type { Answer, Lookup } from './identity.ts';
import { Refusals } from './refusals.ts';

/** What loading a key came to, and until when that may be believed; times are Unix time. */
export type Loaded<T> =
  | {
      readonly value: T;
      /** Until then it is not asked for again. */
      readonly freshUntilMs: number;
      /** Until then it goes on being used while nobody can be asked; never less than `freshUntilMs`. */
      readonly usableUntilMs: number;
    }
  | { readonly value: undefined; readonly freshUntilMs: number }
  | 'unavailable';

type Known<T> = Extract<Loaded<T>, { readonly usableUntilMs: number }>;

export interface LookupCacheOptions<T, I> {
  /** Asks for what `input` stands for. Must not reject. */
  load(input: I, key: string): Promise<Loaded<T>>;
  /** Most keys kept, found and not found each; the least recently used, or the first refused, makes room. */
  readonly maxKeys: number;
  readonly nowMs?: () => number;
}

/**
 * Remembers what was found and, apart from it, what was not: a flood of made-up keys pushes out nothing that is real.
 * Each key is loaded once at a time, however many ask. While loading is unavailable, what was found goes on.
 */
export class LookupCache<T extends object, I> {
  readonly #options: LookupCacheOptions<T, I>;
  readonly #nowMs: () => number;
  readonly #known: LRUCache<string, Known<T>>;
  readonly #unknown: Refusals;
  readonly #underWay = new Map<string, Promise<Answer<T>>>();
  /** Counts `forget`s: what began to load before one is not kept after it. */
  #generation = 0;

  constructor(options: LookupCacheOptions<T, I>) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#known = new LRUCache({ max: options.maxKeys });
    this.#unknown = new Refusals({ maxKeys: options.maxKeys, nowMs: this.#nowMs });
  }

  /** The value of a key, at once while it is fresh; else `input` is loaded. */
  get(key: string, input: I): Lookup<T> {
    const known = this.#known.get(key);
    if (known === undefined) {
      if (this.#unknown.has(key)) return undefined;
    } else if (this.#nowMs() < known.freshUntilMs) {
      return known.value;
    }
    return this.#underWay.get(key) ?? this.#begin(key, input);
  }

  /**
   * Drops a key, found or not, or every value that `what` holds for. What is loading for them is not kept, and not waited
   * for.
   */
  forget(what: string | ((value: T) => boolean)): void {
    this.#generation++;
    this.#underWay.clear();
    if (typeof what === 'string') {
      this.#known.delete(what);
      this.#unknown.delete(what);
      return;
    }
    for (const [key, { value }] of this.#known.entries()) if (what(value)) this.#known.delete(key);
  }

  #begin(key: string, input: I): Promise<Answer<T>> {
    const answer = this.#load(key, input).finally(() => {
      if (this.#underWay.get(key) === answer) this.#underWay.delete(key);
    });
    this.#underWay.set(key, answer);
    return answer;
  }

  async #load(key: string, input: I): Promise<Answer<T>> {
    const generation = this.#generation;
    const loaded = await this.#options.load(input, key);
    if (loaded === 'unavailable') {
      const known = this.#known.get(key);
      return known !== undefined && this.#nowMs() < known.usableUntilMs ? known.value : 'unavailable';
    }
    if (generation === this.#generation) this.#keep(key, loaded);
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
