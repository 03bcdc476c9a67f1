export interface RefusedKeysOptions {
  /** Maximum number of keys. The oldest is evicted. */
  readonly maxKeys: number;
  /** Unix time, or a monotonic clock. */
  readonly nowMs: () => number;
}

/** Caches refused keys, each with an expiry. A timer removes expired keys, even if they are never looked up again. */
export class RefusedKeys {
  readonly #options: RefusedKeysOptions;
  /** In insertion order, which is also the order of expiry. */
  readonly #untilMs = new Map<string, number>();
  #sweep: NodeJS.Timeout | undefined;

  constructor(options: RefusedKeysOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#untilMs.size;
  }

  has(key: string): boolean {
    const untilMs = this.#untilMs.get(key);
    return untilMs !== undefined && this.#options.nowMs() < untilMs;
  }

  add(key: string, untilMs: number): void {
    this.#untilMs.delete(key);
    this.#untilMs.set(key, untilMs);
    const [oldest] = this.#untilMs.keys();
    if (oldest !== undefined && this.#untilMs.size > this.#options.maxKeys) this.#untilMs.delete(oldest);
    this.#sweepLater();
  }

  delete(key: string): void {
    this.#untilMs.delete(key);
  }

  #sweepLater(): void {
    const [firstUntilMs] = this.#untilMs.values();
    if (this.#sweep !== undefined || firstUntilMs === undefined) return;
    const waitMs = Math.max(MIN_WAIT_MS, firstUntilMs - this.#options.nowMs());
    this.#sweep = setTimeout(() => {
      this.#sweep = undefined;
      this.#dropExpired();
      this.#sweepLater();
    }, waitMs).unref();
  }

  #dropExpired(): void {
    const nowMs = this.#options.nowMs();
    for (const [key, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) return;
      this.#untilMs.delete(key);
    }
  }
}

/** Minimum time between two sweeps. */
const MIN_WAIT_MS = 1_000;
