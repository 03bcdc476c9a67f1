/** What a replica writes within a day, in bytes: so much of Redis a flood can take. */
const MOST_WRITTEN = 256 * 1_048_576;
const HOURS = 24;

/** How much of Redis this replica may still take. */
export class DailyRoom {
  readonly #bytes = new Map<number, number>();

  /** Counts bytes that were written. */
  written(hour: number, bytes: number): void {
    this.#bytes.set(hour, (this.#bytes.get(hour) ?? 0) + bytes);
  }

  /** In one hour a replica writes at most half of what it may still write, so that a flood leaves room for others. */
  in(hour: number): { readonly written: number; readonly most: number } {
    let earlier = 0;
    for (const [of, bytes] of this.#bytes) {
      if (of <= hour - HOURS) this.#bytes.delete(of);
      else if (of !== hour) earlier += bytes;
    }
    return { written: this.#bytes.get(hour) ?? 0, most: (MOST_WRITTEN - earlier) / 2 };
  }
}
