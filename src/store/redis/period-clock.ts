import { LEEWAY_MS } from '../../domain/limits/calendar.ts';

const PERIOD_ERROR = /^PERIOD (\d{1,16})$/;

const MOVED_MS = LEEWAY_MS / 2;

/**
 * Unix time by the clock of Redis, as far as calendars need it: the process's own, until Redis says that its time is in neither of the
 * periods that a call named.
 */
export class PeriodClock {
  readonly #ownMs: () => number;
  #aheadMs = 0;

  constructor(ownMs: () => number = Date.now) {
    this.#ownMs = ownMs;
  }

  nowMs(): number {
    return this.#ownMs() + this.#aheadMs;
  }

  /** Whether it differs so much from a time that a call has named that other periods would be named now. */
  hasMoved(unixMs: number): boolean {
    return Math.abs(this.nowMs() - unixMs) > MOVED_MS;
  }

  /** Takes the time of Redis from an error of the script. */
  learn(message: string): void {
    const unixMs = Number(PERIOD_ERROR.exec(message)?.[1] ?? Number.NaN);
    if (Number.isSafeInteger(unixMs)) this.set(unixMs);
  }

  /** Takes the time of Redis. */
  set(unixMs: number): void {
    this.#aheadMs = unixMs - this.#ownMs();
  }
}
