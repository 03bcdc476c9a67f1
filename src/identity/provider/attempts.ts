import { type Backoff, backoffMs } from '../../domain/backoff.ts';

/** The attempts at a provider. After repeated failures it allows one at a time, and doubles the wait between them. */
export class Attempts {
  readonly #tolerated: number;
  readonly #backoff: Backoff;
  #failures = 0;
  /** Questions that failed before the first wait. */
  readonly #failed = new Set<string>();
  #waitUntilMs = Number.NEGATIVE_INFINITY;

  /** @param tolerated consecutive failures before the first wait */
  constructor(tolerated: number, firstMs: number, longestMs: number) {
    this.#tolerated = tolerated;
    this.#backoff = { firstMs, longestMs, jitter: [0.75, 1] };
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
    if (this.#failures > this.#tolerated) this.#wait(nowMs);
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
    if (question !== undefined && this.#failures <= this.#tolerated) {
      if (this.#failed.has(question)) return;
      this.#failed.add(question);
    }
    this.#failures++;
    if (this.#failures > this.#tolerated) this.#wait(nowMs);
  }

  #wait(nowMs: number): void {
    this.#waitUntilMs = nowMs + backoffMs(this.#backoff, this.#failures - this.#tolerated);
  }
}
