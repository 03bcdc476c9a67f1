export interface FairSlotsOptions {
  /** Slots in all. */
  readonly slots: number;
  /** The most of them that one holder has; fewer than `slots`, so that another finds one at once. */
  readonly slotsPerHolder: number;
  readonly waiting: number;
  readonly waitingPerHolder: number;
}

type Waiter = (isGranted: boolean) => void;

/**
 * Shares slots among holders: while some wait, each holder gets one in turn, however many it asks for. Whoever finds no slot
 * waits, as long as it says and as far as there is room.
 */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  readonly #held = new Map<string, number>();
  /** By holder, in the order of their turns. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #taken = 0;
  #waitingCount = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  /** Whether a slot was given, which `release` has to give back; false after `waitMs`, or at once where too many wait. */
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
      const waiter: Waiter = (isGranted) => {
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
      // The holder's next turn comes after everybody else's.
      if (this.#waiting.delete(holder)) this.#waiting.set(holder, own);
      this.#grant(holder);
      waiter(true);
      return;
    }
  }

  #remove(holder: string, waiter: Waiter): void {
    const own = this.#waiting.get(holder);
    if (own === undefined || !own.delete(waiter)) return;
    this.#waitingCount--;
    if (own.size === 0) this.#waiting.delete(holder);
  }
}
