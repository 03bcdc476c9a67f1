export interface BackoffOptions {
  /** Consecutive failures before the first wait. */
  readonly tolerated: number;
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Exponential backoff. After repeated failures it allows one attempt at a time, and doubles the wait between attempts. */
export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;
  /** Questions that failed before the first wait. */
  readonly #failed = new Set<string>();
  #waitUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Whether an attempt would have to wait. */
  isWaiting(nowMs: number): boolean {
    return nowMs < this.#waitUntilMs;
  }

  /** Whether an attempt may start now. If it may, the next attempt has to wait until this one ends or the wait has passed. */
  take(nowMs: number): boolean {
    if (this.isWaiting(nowMs)) return false;
    if (this.#failures > this.#options.tolerated) this.#wait(nowMs);
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#failed.clear();
    this.#waitUntilMs = Number.NEGATIVE_INFINITY;
  }

  /**
   * Before the first wait, failures of one question count once, because the reason may be the question.
   *
   * @param question undefined if it cannot be the reason
   */
  failed(nowMs: number, question?: string): void {
    if (question !== undefined && this.#failures <= this.#options.tolerated) {
      if (this.#failed.has(question)) return;
      this.#failed.add(question);
    }
    this.#failures++;
    if (this.#failures > this.#options.tolerated) this.#wait(nowMs);
  }

  /** Randomised so that replicas which lost the same provider do not retry at the same moment. */
  #wait(nowMs: number): void {
    const { tolerated, firstMs, longestMs } = this.#options;
    const doublings = Math.min(this.#failures - tolerated - 1, 20);
    const waitMs = Math.min(longestMs, firstMs * 2 ** doublings);
    this.#waitUntilMs = nowMs + waitMs * (0.75 + Math.random() / 4);
  }
}
