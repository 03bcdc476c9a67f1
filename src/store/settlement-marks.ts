import { US_PER_SECOND } from '../domain/clock.ts';
import type { Settlement } from './store.ts';

/** How long a settlement is recognized after it was applied, or after its end if it has one: as in Redis. */
const MARKED_US = 90 * US_PER_SECOND;

/** With two, at most twice the marks that are needed are kept. */
const CHECKED_PER_MARK = 2;

/** The ids of settlements that were applied. */
export class SettlementMarks {
  readonly #untilUs = new Map<string, number>();
  #sweep = this.#untilUs.entries();

  /** Marks a settlement, unless it is marked or too late. */
  settle(
    id: string,
    { endsAtUs = 0 }: Settlement,
    nowUs: number,
    isEnded: boolean,
  ): 'settled' | 'already' | 'ended' {
    if ((this.#untilUs.get(id) ?? Number.NEGATIVE_INFINITY) > nowUs) return 'already';
    if (isEnded) return 'ended';
    this.#drop(nowUs);
    this.#untilUs.set(id, Math.max(nowUs, endsAtUs) + MARKED_US);
    return 'settled';
  }

  /** Drops the next marks that are not needed, in a cycle over all. */
  #drop(nowUs: number): void {
    for (let checked = 0; checked < CHECKED_PER_MARK; checked++) {
      const next = this.#sweep.next();
      if (next.done === true) this.#sweep = this.#untilUs.entries();
      else if (next.value[1] <= nowUs) this.#untilUs.delete(next.value[0]);
    }
  }
}
