/** A bucket that keeps every charge until it is a window old: what the stores approximate. Its time never goes back. */
export class ExactBucket {
  readonly windowUs: number;
  limit: number;
  #charges: { readonly atUs: number; readonly points: number }[] = [];
  #held = 0;
  /** Limits that were in force until lately. */
  #former: { readonly limit: number; readonly untilUs: number }[] = [];

  constructor(limit: number, windowUs: number) {
    this.limit = limit;
    this.windowUs = windowUs;
  }

  setLimit(limit: number, nowUs: number): void {
    if (limit === this.limit) return;
    this.#former.push({ limit: this.limit, untilUs: nowUs });
    this.limit = limit;
  }

  add(nowUs: number, points: number): void {
    this.#charges.push({ atUs: nowUs, points });
    this.#held += points;
  }

  /** Points of the window that ends now. */
  held(nowUs: number): number {
    const startUs = nowUs - this.windowUs;
    let expired = 0;
    for (const { atUs, points } of this.#charges) {
      if (atUs > startUs) break;
      expired += 1;
      this.#held -= points;
    }
    if (expired > 0) this.#charges.splice(0, expired);
    return this.#held;
  }

  /** The same for a later time, if nothing is charged before. */
  heldLater(atUs: number): number {
    const startUs = atUs - this.windowUs;
    return this.#charges.reduce((sum, charge) => sum + (charge.atUs > startUs ? charge.points : 0), 0);
  }

  /**
   * The points that a store may keep for too long: of the oldest entry, which holds at most 1/250 of a limit, all charges but the
   * last. A former limit applies for a window, and for the slot in which an entry grows.
   */
  keptTooLong(nowUs: number): number {
    this.#former = this.#former.filter(({ untilUs }) => untilUs + 1.01 * this.windowUs >= nowUs);
    const most = Math.max(this.limit, ...this.#former.map(({ limit }) => limit));
    return Math.max(0, Math.floor(most / 250) - 1);
  }

  resetAfterUs(nowUs: number): number {
    this.held(nowUs);
    const newest = this.#charges.at(-1);
    return newest === undefined ? 0 : newest.atUs + this.windowUs - nowUs;
  }
}
