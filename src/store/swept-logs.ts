import type { CoalescedLog } from './coalesced-log.ts';

/** The buckets of a memory store that holds as many as there are. */
export class SweptLogs {
  readonly #logs = new Map<string, CoalescedLog>();
  #sweep = this.#logs.values();

  /** The number of buckets held, including expired ones that were not swept yet. */
  get size(): number {
    return this.#logs.size;
  }

  get(key: string): CoalescedLog | undefined {
    return this.#logs.get(key);
  }

  /** The bucket of a key; made if there is none. */
  renew(key: string, make: (key: string) => CoalescedLog): CoalescedLog {
    let log = this.#logs.get(key);
    if (log === undefined) {
      log = make(key);
      this.#logs.set(key, log);
    }
    return log;
  }

  clear(): void {
    this.#logs.clear();
  }

  /** Drops the next `count` buckets if they are expired, in a cycle over all buckets. */
  sweep(nowUs: number, count: number): void {
    let left = count;
    for (const log of this.#sweep) {
      if (log.isEmptyAt(nowUs)) this.#logs.delete(log.key);
      left -= 1;
      if (left === 0) return;
    }
    this.#sweep = this.#logs.values();
  }
}
