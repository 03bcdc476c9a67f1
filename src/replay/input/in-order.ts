import type { Entry } from './entry.ts';

/**
 * Longest response whose line is still put into the order of the charges. Lines are written when responses end, so this
 * bounds the entries held in memory.
 */
const LONGEST_RESPONSE_US = 10_000_000;

/** Time between two sorts. A shorter one would cost more time, a longer one more memory. */
const RELEASE_EVERY_US = LONGEST_RESPONSE_US / 4;

/** Puts entries into the order of their charges. Lines come in the order in which responses ended, from several files. */
export class InOrder {
  readonly #deliver: (entry: Entry) => void;
  #held: Entry[] = [];
  #releasedUntilUs = Number.NEGATIVE_INFINITY;

  constructor(deliver: (entry: Entry) => void) {
    this.#deliver = deliver;
  }

  take(entry: Entry): void {
    this.#held.push(entry);
  }

  /** @param watermarkUs no file has a line before this time left to read */
  advance(watermarkUs: number): void {
    const untilUs = watermarkUs - LONGEST_RESPONSE_US;
    if (untilUs < this.#releasedUntilUs + RELEASE_EVERY_US) return;
    this.#releasedUntilUs = untilUs;
    this.#release(untilUs);
  }

  end(): void {
    this.#release(Number.POSITIVE_INFINITY);
  }

  #release(untilUs: number): void {
    // Stable: entries of the same microsecond keep the order of the log.
    const sorted = this.#held.sort((one, other) => one.atUs - other.atUs);
    let count = 0;
    for (const entry of sorted) {
      if (entry.atUs > untilUs) break;
      this.#deliver(entry);
      count += 1;
    }
    this.#held = sorted.slice(count);
  }
}
