/** Charges within this share of the window are kept as one: a busy bucket holds at most 1,001 entries. */
const SLOTS_PER_WINDOW = 1_000;

/** Numbers per entry: its time and its points. */
const ENTRY = 2;

/**
 * The points requested from one bucket in the window that ends now, and the maximum over all windows. Refused points
 * are included, because this measures demand. Exact to 1/1,000 of a window.
 */
export class DemandWindow {
  fullest = 0;
  #total = 0;
  /** A ring of entries; its capacity is a power of two. */
  #ring = [0, 0];
  #oldest = 0;
  #count = 0;

  /** Times must not decrease. */
  add(points: number, nowUs: number, windowUs: number): void {
    this.#forget(nowUs - windowUs);
    const newest = this.#placeOf(this.#count - 1);
    if (this.#count > 0 && nowUs - (this.#ring[newest] ?? 0) < windowUs / SLOTS_PER_WINDOW) {
      this.#ring[newest + 1] = (this.#ring[newest + 1] ?? 0) + points;
    } else {
      this.#push(nowUs, points);
    }
    this.#total += points;
    if (this.#total > this.fullest) this.fullest = this.#total;
  }

  #forget(untilUs: number): void {
    while (this.#count > 0) {
      const place = this.#placeOf(0);
      if ((this.#ring[place] ?? 0) > untilUs) return;
      this.#total -= this.#ring[place + 1] ?? 0;
      this.#oldest = (this.#oldest + 1) & (this.#ring.length / ENTRY - 1);
      this.#count -= 1;
    }
  }

  #placeOf(index: number): number {
    return ((this.#oldest + index) & (this.#ring.length / ENTRY - 1)) * ENTRY;
  }

  #push(atUs: number, points: number): void {
    if (this.#count * ENTRY === this.#ring.length) this.#grow();
    this.#count += 1;
    const place = this.#placeOf(this.#count - 1);
    this.#ring[place] = atUs;
    this.#ring[place + 1] = points;
  }

  #grow(): void {
    const start = this.#oldest * ENTRY;
    const inOrder = [...this.#ring.slice(start), ...this.#ring.slice(0, start)];
    this.#ring = [...inOrder, ...inOrder.map(() => 0)];
    this.#oldest = 0;
  }
}
