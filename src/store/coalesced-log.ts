/**
 * A sliding log of points whose charges share an entry while they fall in the same 1/100 of the window. An entry
 * leaves when its *last* charge is a window old, so no window ever holds more than the limit; an early charge of an
 * entry stays up to 1/100 of a window longer than it must, which costs a saturating client under 1 %. At most 101
 * entries. The same counter as lua/charge.lua, step by step.
 */
import type { BucketState } from './store.ts';

const SLOTS_PER_WINDOW = 100;

export class CoalescedLog {
  #total = 0;
  /** Entries from `#oldest` on, oldest first; the last one is the newest. */
  #atUs: number[] = [];
  #points: number[] = [];
  #oldest = 0;

  copy(): CoalescedLog {
    const copy = new CoalescedLog();
    copy.#total = this.#total;
    copy.#atUs = this.#atUs.slice(this.#oldest);
    copy.#points = this.#points.slice(this.#oldest);
    return copy;
  }

  /** Lets go of what is a window old. Call it before anything else, with the same `nowUs`. */
  advance(nowUs: number, windowUs: number): void {
    this.#rewind(nowUs);
    const startUs = nowUs - windowUs;
    for (let atUs = this.#atUs[this.#oldest]; atUs !== undefined && atUs <= startUs; ) {
      this.#total -= this.#points[this.#oldest] ?? 0;
      this.#oldest += 1;
      atUs = this.#atUs[this.#oldest];
    }
    if (this.#oldest > SLOTS_PER_WINDOW) this.#compact();
  }

  hasRoom(cost: number, limit: number): boolean {
    return this.#total + cost <= limit;
  }

  spend(cost: number, nowUs: number, windowUs: number): void {
    const slotUs = windowUs / SLOTS_PER_WINDOW;
    const newest = this.#atUs.length - 1;
    const newestUs = this.#atUs[newest];
    if (
      newest >= this.#oldest &&
      newestUs !== undefined &&
      Math.floor(newestUs / slotUs) === Math.floor(nowUs / slotUs)
    ) {
      this.#atUs[newest] = nowUs;
      this.#points[newest] = (this.#points[newest] ?? 0) + cost;
    } else {
      this.#atUs.push(nowUs);
      this.#points.push(cost);
    }
    this.#total += cost;
  }

  /** `hadRoom` is what `hasRoom` said before any spending. */
  state(cost: number, limit: number, hadRoom: boolean, nowUs: number, windowUs: number): BucketState {
    const newestUs = this.#atUs[this.#atUs.length - 1] ?? 0;
    return {
      remaining: Math.max(0, limit - this.#total),
      resetAfterUs: this.#total > 0 ? newestUs + windowUs - nowUs : 0,
      retryAfterUs: hadRoom ? 0 : this.#retryAfterUs(cost, limit, nowUs, windowUs),
    };
  }

  /** A cost above the limit never fits: its wait is one window, again and again. */
  #retryAfterUs(cost: number, limit: number, nowUs: number, windowUs: number): number {
    if (cost > limit) return windowUs;
    let excess = this.#total + cost - limit;
    let entry = this.#oldest;
    for (; excess > 0 && entry < this.#atUs.length; entry++) excess -= this.#points[entry] ?? 0;
    return (this.#atUs[entry - 1] ?? nowUs) + windowUs - nowUs;
  }

  /** The clock went back: what was charged "later" counts as charged now, so it stays for one more window at most. */
  #rewind(nowUs: number): void {
    let points = 0;
    for (let last = this.#atUs.length - 1; last >= this.#oldest && (this.#atUs[last] ?? 0) > nowUs; last--) {
      points += this.#points[last] ?? 0;
      this.#atUs.pop();
      this.#points.pop();
    }
    if (points === 0) return;
    this.#atUs.push(nowUs);
    this.#points.push(points);
  }

  #compact(): void {
    this.#atUs = this.#atUs.slice(this.#oldest);
    this.#points = this.#points.slice(this.#oldest);
    this.#oldest = 0;
  }
}
