export interface FairSlotsOptions {
  /** Total number of slots. */
  readonly slots: number;
  /** Maximum for one holder. Less than `slots`, so that other holders always find a free slot. */
  readonly slotsPerHolder: number;
  /** Maximum number of waiters. */
  readonly waiting: number;
  readonly waitingPerHolder: number;
}

/**
 * Shares a fixed number of slots fairly among holders. Waiting holders get free slots in turn, regardless of how many
 * requests each of them has. The number of waiters is limited.
 */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  readonly #held = new Map<string, number>();
  /** By holder, in the order in which they get the next slots. */
  readonly #waiting = new Map<string, Set<(isGranted: boolean) => void>>();
  #taken = 0;
  #waitingCount = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  /**
   * Waits up to `waitMs` for a slot. Resolves to true if the holder got one and must `release` it. Resolves to false
   * after `waitMs`, or immediately if there are too many waiters.
   */
  async take(holder: string, waitMs: number): Promise<boolean> {
    if (this.#isFreeFor(holder)) {
      this.#grant(holder);
      return true;
    }
    const { waiting, waitingPerHolder } = this.#options;
    const own = this.#waiting.get(holder) ?? new Set();
    if (this.#waitingCount >= waiting || own.size >= waitingPerHolder) return false;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#remove(holder, waiter);
        resolve(false);
      }, waitMs);
      const waiter = (isGranted: boolean) => {
        clearTimeout(timer);
        resolve(isGranted);
      };
      own.add(waiter);
      this.#waiting.set(holder, own);
      this.#waitingCount++;
    });
  }

  release(holder: string): void {
    this.#taken--;
    const held = (this.#held.get(holder) ?? 0) - 1;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
    this.#grantNext();
  }

  #isFreeFor(holder: string): boolean {
    const { slots, slotsPerHolder } = this.#options;
    return this.#taken < slots && (this.#held.get(holder) ?? 0) < slotsPerHolder;
  }

  #grant(holder: string): void {
    this.#taken++;
    this.#held.set(holder, (this.#held.get(holder) ?? 0) + 1);
  }

  #grantNext(): void {
    for (const [holder, own] of this.#waiting) {
      if (!this.#isFreeFor(holder)) continue;
      const [waiter] = own;
      if (waiter === undefined) continue;
      this.#remove(holder, waiter);
      // Move the holder to the end of the queue.
      if (this.#waiting.delete(holder)) this.#waiting.set(holder, own);
      this.#grant(holder);
      waiter(true);
      return;
    }
  }

  #remove(holder: string, waiter: (isGranted: boolean) => void): void {
    const own = this.#waiting.get(holder);
    if (own === undefined || !own.delete(waiter)) return;
    this.#waitingCount--;
    if (own.size === 0) this.#waiting.delete(holder);
  }
}
