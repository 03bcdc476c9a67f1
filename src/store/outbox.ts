/** Messages to a receiver that wait until they are delivered. */

/** Messages that wait, at most: some 6 MB. One more, and the one that is due last is dropped: it has failed for the longest time. */
export const MOST_MESSAGES = 10_000;

/** What keeps everyone from sending to a receiver: it asked for a pause, or wants nothing any more. */
export type ReceiverHold = 'busy' | 'gone';

export interface Added {
  /** `taken`: the caller delivers it now. `kept`: somebody takes it later. `gone`: the receiver wants nothing, and it was not kept. */
  readonly state: 'taken' | 'kept' | 'gone';
  /** Messages that were dropped to make room. */
  readonly dropped: number;
}

export interface Taken {
  readonly hold: ReceiverHold | undefined;
  /** Never tried. */
  readonly first: readonly string[];
  /** Tried before, or taken by a replica that has ended. */
  readonly repeated: readonly string[];
}

/**
 * Messages that wait until they are delivered. A message that was taken is taken by somebody else if it is neither postponed nor removed
 * within `pace.outboxLeaseMs`. All methods reject if the store cannot be asked.
 *
 * `receiver` is an opaque text. A hold is for one receiver; messages are for any, so that what waits when a receiver is replaced is not lost.
 */
export interface Outbox {
  /** Messages that wait or are taken, when they were last counted; undefined if they cannot be counted. */
  readonly waiting: number | undefined;
  /** @param isTaken whether the caller has time to deliver it now */
  add(receiver: string, message: string, isTaken: boolean): Promise<Added>;
  /** Takes messages that are due: first those that were never tried. */
  take(receiver: string, most: number, mostRepeated: number): Promise<Taken>;
  /** Gives back a message that was taken; it is due in so many milliseconds. */
  postpone(message: string, waitMs: number): Promise<void>;
  remove(message: string): Promise<void>;
  /** Nobody takes messages for the receiver for that long. */
  pause(receiver: string, lifeMs: number): Promise<void>;
  /** Gives no messages to this receiver any more, and keeps none that are added for it. What waits is left to another receiver. */
  end(receiver: string): Promise<void>;
  close(): void;
}

/** An outbox of this process alone, which ends with it. */
export class MemoryOutbox implements Outbox {
  /** Unix ms of the next attempt by message; 0 before the first. Taken ones are not here. */
  readonly #due = new Map<string, number>();
  readonly #taken = new Set<string>();
  #hold: { readonly hold: ReceiverHold; readonly receiver: string; readonly untilMs: number } | undefined;

  get waiting(): number {
    return this.#due.size + this.#taken.size;
  }

  async add(receiver: string, message: string, isTaken: boolean): Promise<Added> {
    const hold = this.#holdOf(receiver);
    if (hold === 'gone') return { state: 'gone', dropped: 0 };
    const isNow = isTaken && hold === undefined;
    if (isNow) this.#taken.add(message);
    else this.#due.set(message, 0);
    return { state: isNow ? 'taken' : 'kept', dropped: this.#dropLast() };
  }

  async take(receiver: string, most: number, mostRepeated: number): Promise<Taken> {
    const hold = this.#holdOf(receiver);
    const due = (from: number, to: number, count: number) =>
      [...this.#due].filter(([, dueMs]) => dueMs >= from && dueMs <= to).slice(0, Math.max(0, count));
    const first = hold === undefined ? due(0, 0, most) : [];
    const left = Math.min(mostRepeated, most - first.length);
    const repeated = hold === undefined ? due(1, performance.now(), left) : [];
    for (const [message] of [...first, ...repeated]) {
      this.#due.delete(message);
      this.#taken.add(message);
    }
    return { hold, first: first.map(([one]) => one), repeated: repeated.map(([one]) => one) };
  }

  async postpone(message: string, waitMs: number): Promise<void> {
    if (this.#taken.delete(message)) this.#due.set(message, performance.now() + waitMs);
  }

  async remove(message: string): Promise<void> {
    this.#taken.delete(message);
  }

  async pause(receiver: string, lifeMs: number): Promise<void> {
    this.#hold = { hold: 'busy', receiver, untilMs: performance.now() + lifeMs };
  }

  /** Drops what waits: a process has one receiver. */
  async end(receiver: string): Promise<void> {
    this.#hold = { hold: 'gone', receiver, untilMs: Number.POSITIVE_INFINITY };
    this.#due.clear();
    this.#taken.clear();
  }

  close(): void {}

  #holdOf(receiver: string): ReceiverHold | undefined {
    const held = this.#hold;
    return held?.receiver === receiver && held.untilMs > performance.now() ? held.hold : undefined;
  }

  #dropLast(): number {
    if (this.waiting <= MOST_MESSAGES) return 0;
    let last: string | undefined;
    let lastMs = -1;
    for (const [message, dueMs] of this.#due) if (dueMs > lastMs) [last, lastMs] = [message, dueMs];
    if (last === undefined) return 0;
    this.#due.delete(last);
    return 1;
  }
}
