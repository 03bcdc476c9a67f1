import { ENTRY_BYTES, hourOf, type RefusedId, writeEntry } from './id-index.ts';

/** Ids of requests that wait to be written, in bytes: of a flood while Redis is away. */
const MOST_BYTES = 500_000 * ENTRY_BYTES;
const FIRST_BYTES = 256 * ENTRY_BYTES;

/** By hour: entries of requests. */
export type IdsByHour = readonly (readonly [hour: number, entries: Buffer])[];

/** Which requests were refused, as entries of the index. */
export class PendingIds {
  /** By hour: entries, in a buffer that is longer than they are. */
  #ids = new Map<number, { bytes: Buffer; length: number }>();
  /** The length of what was taken last: as much is likely to come again. */
  #lastLength = 0;

  /** Returns false if too many wait. */
  add(requestId: string, id: RefusedId): boolean {
    const hour = hourOf(id.atMs);
    let ids = this.#ids.get(hour);
    if (ids === undefined) {
      ids = { bytes: Buffer.allocUnsafe(this.#lastLength + FIRST_BYTES), length: 0 };
      this.#ids.set(hour, ids);
    }
    if (ids.length + ENTRY_BYTES > ids.bytes.length) {
      if (ids.length >= MOST_BYTES) return false;
      ids.bytes = Buffer.concat([ids.bytes, Buffer.allocUnsafe(ids.bytes.length + FIRST_BYTES)]);
    }
    writeEntry(ids.bytes, ids.length, requestId, id);
    ids.length += ENTRY_BYTES;
    return true;
  }

  take(): IdsByHour {
    const taken = [...this.#ids].map(
      ([hour, { bytes, length }]) => [hour, bytes.subarray(0, length)] as const,
    );
    this.#ids = new Map();
    this.#lastLength = taken.at(-1)?.[1].length ?? 0;
    return taken;
  }

  /** Keeps what could not be written, for the next time. Returns how many are too many. */
  keep(late: IdsByHour): number {
    let lost = 0;
    for (const [hour, bytes] of late) {
      if (bytes.length === 0) continue;
      const { bytes: newer, length } = this.#ids.get(hour) ?? { bytes, length: 0 };
      const all = Buffer.concat([bytes, newer.subarray(0, length)]);
      const kept = all.subarray(0, MOST_BYTES);
      lost += (all.length - kept.length) / ENTRY_BYTES;
      this.#ids.set(hour, { bytes: kept, length: kept.length });
    }
    return lost;
  }
}
