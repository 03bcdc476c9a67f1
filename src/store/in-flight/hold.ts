/**
 * The slots of one request in buckets that count concurrent requests. The store takes them with the charge, and gives them back when
 * everyone who works on the request has ended: the exchange with its client, and its way to the upstream.
 */
export class Hold {
  #users = 1;
  #release: (() => void) | undefined;

  /** Whether a store counts these slots. */
  get isTaken(): boolean {
    return this.#release !== undefined;
  }

  /** @param release called once, when the request has ended; at once if it has ended before */
  take(release: () => void): void {
    this.#release = release;
    if (this.#users === 0) release();
  }

  /** One more works on the request, and calls `end`. */
  share(): void {
    this.#users += 1;
  }

  /** To be called once by each user, and once by whoever made it. */
  end(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#release?.();
  }
}
