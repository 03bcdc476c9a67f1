export interface RefusalsOptions {
  /** The most keys that are remembered; the oldest makes room. */
  readonly maxKeys: number;
  /** Unix time. */
  readonly nowMs: () => number;
}

/** Remembers refused keys for a while each, and no longer: what is over is dropped though nobody asks again. */
export class Refusals {
  readonly #options: RefusalsOptions;
  /** In the order in which they were added, which is that of their ends. */
  readonly #untilMs = new Map<string, number>();
  #sweep: NodeJS.Timeout | undefined;

  constructor(options: RefusalsOptions) {
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
    const waitMs = Math.max(LEAST_WAIT_MS, firstUntilMs - this.#options.nowMs());
    this.#sweep = setTimeout(() => {
      this.#sweep = undefined;
      this.#dropEnded();
      this.#sweepLater();
    }, waitMs).unref();
  }

  #dropEnded(): void {
    const nowMs = this.#options.nowMs();
    for (const [key, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) return;
      this.#untilMs.delete(key);
    }
  }
}

/** One sweep drops all that ended within it. */
const LEAST_WAIT_MS = 1_000;
