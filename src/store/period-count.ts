/**
 * The points of one bucket in its present period of the calendar. This is the algorithm of lua/charge.lua; lua/README.md states its
 * guarantees. All times are Unix times in µs.
 */
import type { Span } from '../domain/limits/calendar.ts';
import type { BucketState } from './store.ts';

const US_PER_MS = 1_000;
/** After the end of its period, a count only matters to a clock that goes back. */
export const KEPT_US = 900_000_000;

export class PeriodCount {
  readonly key: string;
  #total = 0;
  #atUs = 0;
  /** What counts of the total in the period that was entered. A clock that goes back may need the rest again. */
  #used = 0;
  #startUs = 0;
  #endUs = 0;

  constructor(key: string) {
    this.key = key;
  }

  copy(): PeriodCount {
    const copy = new PeriodCount(this.key);
    copy.#total = this.#total;
    copy.#atUs = this.#atUs;
    return copy;
  }

  isEmptyAt(nowUs: number): boolean {
    return nowUs >= this.#endUs + KEPT_US;
  }

  /**
   * Enters the one of two periods that has this time. Points count in it if the last of them was charged since it began: after a change of its start, they
   * may all have been. If the clock went back to the period before, the bucket stays in its period until the clock has caught up; if it went
   * back by more, what counted then counts as charged now.
   */
  enter({ startMs, endMs, nextEndMs }: Span, nowUs: number): void {
    const [endUs, nextEndUs] = [endMs * US_PER_MS, nextEndMs * US_PER_MS];
    const startUs = nowUs < endUs ? startMs * US_PER_MS : endUs;
    if (this.#atUs >= nextEndUs) this.#atUs = nowUs;
    this.#used = this.#atUs < startUs ? 0 : this.#total;
    const isNext = Math.max(nowUs, this.#atUs) >= endUs;
    this.#startUs = isNext ? endUs : startMs * US_PER_MS;
    this.#endUs = isNext ? nextEndUs : endUs;
  }

  hasRoom(cost: number, limit: number): boolean {
    return this.#used + cost <= limit;
  }

  spend(cost: number, nowUs: number): void {
    this.#used += cost;
    this.#total = this.#used;
    this.#atUs = Math.max(this.#atUs, nowUs);
  }

  /**
   * Gives back points of a charge of the present period, or of any charges of it if the time is unknown; or adds points, above the limit if
   * it must be. Returns how many are above it.
   */
  settle(more: number, limit: number, chargedAtUs: number | undefined, nowUs: number): number {
    if (more > 0) {
      this.spend(more, nowUs);
      return Math.max(0, Math.min(more, this.#used - limit));
    }
    if (chargedAtUs !== undefined && (chargedAtUs < this.#startUs || this.#used + more < 0)) return 0;
    if (this.#used === 0) return 0;
    this.#used = Math.max(0, this.#used + more);
    this.#total = this.#used;
    return 0;
  }

  state(limit: number, hadRoom: boolean, nowUs: number): BucketState {
    const resetAfterUs = this.#endUs - nowUs;
    return {
      remaining: Math.max(0, limit - this.#used),
      resetAfterUs,
      retryAfterUs: hadRoom ? 0 : resetAfterUs,
    };
  }
}
