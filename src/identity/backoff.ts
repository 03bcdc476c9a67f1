export interface BackoffOptions {
  /** Failures in a row that are taken for accidents. */
  readonly tolerated: number;
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Says when something that keeps failing may be tried again: one try at a time, each after twice the wait. */
export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;
  #waitUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Whether a try would have to wait. */
  isWaiting(nowMs: number): boolean {
    return nowMs < this.#waitUntilMs;
  }

  /** Takes the try when there is one: whoever asks next has to wait until this one ends, or for another wait. */
  take(nowMs: number): boolean {
    if (this.isWaiting(nowMs)) return false;
    if (this.#failures > this.#options.tolerated) this.#wait(nowMs);
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#waitUntilMs = Number.NEGATIVE_INFINITY;
  }

  failed(nowMs: number): void {
    this.#failures++;
    if (this.#failures > this.#options.tolerated) this.#wait(nowMs);
  }

  /** Replicas that lost the same provider come back scattered. */
  #wait(nowMs: number): void {
    const { tolerated, firstMs, longestMs } = this.#options;
    const doublings = Math.min(this.#failures - tolerated - 1, 20);
    const waitMs = Math.min(longestMs, firstMs * 2 ** doublings);
    this.#waitUntilMs = nowMs + waitMs * (0.75 + Math.random() / 4);
  }
}
