import { pace } from '../domain/pace.ts';
import type { Presence, SeenReplicas } from '../store/shared-store.ts';

/**
 * How many replicas share the store, as this one saw last. It announces itself as long as it runs.
 *
 * The number rises as soon as another replica is seen. It falls when two announcements in a row have found fewer, because one that was
 * late is usually followed by the next, and only when this replica has been on the list without a gap for as long as an announcement
 * lasts: after a gap, a list that lacks others has probably lost them, and they still run.
 */
export class Replicas {
  readonly #presence: Presence | undefined;
  readonly #nowMs: () => number;
  #count: number;
  #lastSeen = 1;
  #seenAtMs: number | undefined;
  #brokenAtMs = Number.NEGATIVE_INFINITY;
  #isAnnouncing = false;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param presence undefined where this process is the only replica
   * @param expected the number until the first is seen
   * @param nowMs a clock for tests; it must not run backwards
   */
  constructor(
    presence: Presence | undefined,
    expected: number,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#presence = presence;
    this.#count = presence === undefined ? 1 : expected;
    this.#nowMs = nowMs;
  }

  /** This one included. Without the store, the number that was seen last. */
  get count(): number {
    return this.#count;
  }

  /** How long ago the number was seen, in seconds; undefined if it never was. */
  get ageSeconds(): number | undefined {
    return this.#seenAtMs === undefined ? undefined : (this.#nowMs() - this.#seenAtMs) / 1_000;
  }

  /** Announces this replica at once, and regularly until `close`. */
  start(): void {
    void this.announce();
    this.#timer = setInterval(() => void this.announce(), pace.announceMs).unref();
  }

  /** Does nothing while an earlier announcement waits for the store, whose connection ends it. */
  async announce(): Promise<void> {
    if (this.#presence === undefined || this.#isAnnouncing) return;
    this.#isAnnouncing = true;
    try {
      this.#see(await this.#presence.announce());
    } catch {
      // The store's own metrics and log report a Redis that does not answer.
      this.#brokenAtMs = this.#nowMs();
    } finally {
      this.#isAnnouncing = false;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#presence?.close();
  }

  #see({ replicas, isContinued }: SeenReplicas): void {
    const nowMs = this.#nowMs();
    if (!isContinued) this.#brokenAtMs = nowMs;
    const isWhole = nowMs - this.#brokenAtMs >= pace.presenceMs;
    const seenTwice = Math.max(replicas, this.#lastSeen);
    this.#lastSeen = replicas;
    if (seenTwice < this.#count && !isWhole) return;
    this.#count = seenTwice;
    this.#seenAtMs = nowMs;
  }
}
