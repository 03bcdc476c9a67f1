/** The entries that were kept last, in two generations: keeping an order of use costs more per request. */
export class Generations<T> {
  readonly #most: number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  /** @param most entries per generation */
  constructor(most: number) {
    this.#most = most;
  }

  get isEmpty(): boolean {
    return this.#young.size === 0 && this.#old.size === 0;
  }

  get(key: string): T | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** Keeps an entry. After `most` newer ones, the older generation is dropped. */
  set(key: string, value: T): void {
    if (this.#young.size >= this.#most && !this.#young.has(key)) this.#turn();
    this.#young.set(key, value);
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
  }

  /** The entry of a key, which becomes the newest. It is created if needed. */
  renew(key: string, make: (key: string) => T): T {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const value = this.#old.get(key) ?? make(key);
    if (this.#young.size >= this.#most) this.#turn();
    this.#young.set(key, value);
    return value;
  }

  /** A key may come twice. */
  *keys(): Generator<string> {
    yield* this.#old.keys();
    yield* this.#young.keys();
  }

  clear(): void {
    // Not `clear`, which keeps the old entries in memory (docs/decisions/0011).
    if (this.#young.size > 0) this.#young = new Map();
    if (this.#old.size > 0) this.#old = new Map();
  }
}
