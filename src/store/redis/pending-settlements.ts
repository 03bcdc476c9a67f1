import { randomBytes } from 'node:crypto';
import { Later, withinMs } from '../../domain/awaitable.ts';
import { backoffMs } from '../../domain/backoff.ts';
import { pace } from '../../domain/pace.ts';
import { type DroppedReason, isConcurrent, type Settled, type Settlement } from '../store.ts';
import type { StoreObserver } from '../store-observer.ts';
import { mayHaveRun } from './connection/redis-failures.ts';

/** Settlements that wait for Redis, at most: some 10 MB. */
const MOST_WAITING = 20_000;
/** Buckets of one call, as for charges. */
const MOST_BUCKETS = 128;
/** For how long a settlement that Redis may have applied is sent again. */
const RESENT_MS = 30_000;
/** For how long Redis recognizes it: longer, because a call may take a moment to run. A connection that is silent for a second is closed. */
const MARKED_MS = 90_000;
/** How often a settlement is sent whose counts are being put back: 20,000 take Redis a tenth of this time. */
const MISSING_MS = 1_000;
/** A closed store waits this long for the answers to its settlements. */
const CLOSING_MS = 2_000;
/** A nonce is a random name of the replica and a number, so that two replicas hardly ever give a settlement the same one. */
const NAME_BYTES = 4;
const MS_PER_SECOND = 1_000;

interface Sent {
  readonly settlement: Settlement;
  /** Shows whether Redis has applied it for this replica. Two settlements with one id have different ones, also in one replica. */
  readonly nonce: string;
}

interface Waiting extends Sent {
  readonly settled: Later<Settled>;
  /** After this, the points count in no window, and the slots are free. */
  readonly uselessMs: number;
  /** When it was first sent in a call that may have run. */
  unknownSinceMs: number | undefined;
}

interface Link {
  readonly groupOf: (key: string) => number;
  /** Why calls of a group cannot be made now. */
  readonly problemOf: (group: number) => string | undefined;
  /** Returns undefined where counts are being put back. Rejects with the error of Redis or of its connection. */
  readonly send: (
    sent: readonly Sent[],
    group: number,
    markedMs: number,
  ) => Promise<readonly (Settled | undefined)[]>;
}

/**
 * The settlements that Redis has not answered. They are sent with the charges of their turn, many in a call, and again while Redis does not
 * answer and their points count.
 */
export class PendingSettlements {
  readonly #link: Link;
  readonly #observer: StoreObserver;
  readonly #wake: () => void;
  /** Settlements that are sent at the end of this turn. */
  readonly #groups = new Map<number, Waiting[]>();
  /** Settlements that could not be sent, or were not answered. They are kept apart so that new ones do not wait with them. */
  readonly #unsent: Waiting[] = [];
  readonly #calls = new Set<Promise<void>>();
  /** Their counts are being put back. */
  readonly #missing: Waiting[] = [];
  readonly #name = randomBytes(NAME_BYTES).toString('base64url');
  #added = 0;
  #missingTimer: NodeJS.Timeout | undefined;
  #count = 0;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param wake has `flush` called at the end of this turn */
  constructor(link: Link, observer: StoreObserver, wake: () => void) {
    this.#link = link;
    this.#observer = observer;
    this.#wake = wake;
  }

  add(settlement: Settlement): Later<Settled> {
    const settled = new Later<Settled>();
    const waiting = {
      settlement,
      nonce: `${this.#name}${this.#added.toString(36)}`,
      settled,
      uselessMs: performance.now() + MS_PER_SECOND * longestSeconds(settlement),
      unknownSinceMs: undefined,
    };
    this.#added += 1;
    this.#count += 1;
    if (this.#isClosed) this.#drop(waiting, 'closed');
    else if (this.#count > MOST_WAITING) this.#drop(waiting, 'full');
    else {
      if (this.#groups.size === 0) this.#wake();
      this.#keep(waiting);
    }
    return settled;
  }

  /** Sends what is new, in the order in which it came. What cannot be sent now waits to be sent again. */
  flush(): void {
    if (this.#groups.size === 0) return;
    const groups = [...this.#groups];
    this.#groups.clear();
    const nowMs = performance.now();
    for (const [group, all] of groups) {
      const useful = all.filter((waiting) => !this.#isTooLate(waiting, nowMs));
      if (this.#link.problemOf(group) === undefined)
        for (const some of callsOf(useful)) this.#send(some, group);
      else this.#again(useful);
    }
  }

  /** Sends what waits to be sent again, without waiting for its time: a server answers again. */
  sendAgain(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const waiting of this.#unsent.splice(0)) this.#keep(waiting);
    this.flush();
  }

  /** Sends what waits once more, and drops what is not answered. */
  async close(): Promise<void> {
    this.#sendMissing();
    this.sendAgain();
    this.#isClosed = true;
    clearTimeout(this.#timer);
    if (this.#calls.size > 0) await withinMs(Promise.all(this.#calls), CLOSING_MS);
    for (const waiting of this.#unsent.splice(0)) this.#drop(waiting, 'closed');
  }

  #keep(waiting: Waiting): void {
    const group = this.#link.groupOf(waiting.settlement.charge.buckets[0]?.key ?? '');
    const others = this.#groups.get(group);
    if (others === undefined) this.#groups.set(group, [waiting]);
    else others.push(waiting);
  }

  #send(some: readonly Waiting[], group: number): void {
    const sentMs = performance.now();
    const call = this.#link
      .send(some, group, MARKED_MS)
      .then(
        (answers) => this.#answered(some, answers),
        (error: unknown) =>
          this.#failed(some, sentMs, error instanceof Error ? error.message : String(error)),
      )
      .finally(() => this.#calls.delete(call));
    this.#calls.add(call);
  }

  #answered(some: readonly Waiting[], answers: readonly (Settled | undefined)[]): void {
    this.#failures = 0;
    for (const [index, waiting] of some.entries()) {
      const answer = answers[index];
      if (answer === undefined) this.#isMissing(waiting);
      if (answer === undefined || answer.outcome === 'dropped') continue;
      const over = answer.buckets.map((bucket) => bucket?.overPoints ?? 0);
      this.#count -= 1;
      this.#observer.settled(answer.outcome, Math.max(0, ...over));
      waiting.settled.resolve(answer);
    }
  }

  /** Apart from the others, which need not wait for it. */
  #isMissing(waiting: Waiting): void {
    if (this.#isClosed) {
      this.#drop(waiting, 'closed');
      return;
    }
    this.#missing.push(waiting);
    this.#missingTimer ??= setTimeout(() => this.#sendMissing(), MISSING_MS).unref();
  }

  #sendMissing(): void {
    clearTimeout(this.#missingTimer);
    this.#missingTimer = undefined;
    for (const waiting of this.#missing.splice(0)) this.#keep(waiting);
    this.flush();
  }

  #failed(some: readonly Waiting[], sentMs: number, message: string): void {
    // A script that Redis has interrupted may have applied some of them.
    for (const waiting of some)
      if (mayHaveRun(message) || isOfScript(message)) waiting.unknownSinceMs ??= sentMs;
    this.#again(some);
  }

  #again(some: readonly Waiting[]): void {
    // Calls may fail after `close` has returned.
    if (this.#isClosed) {
      for (const waiting of some) this.#drop(waiting, 'closed');
      return;
    }
    this.#unsent.push(...some);
    if (some.length === 0 || this.#timer !== undefined) return;
    this.#failures += 1;
    const waitMs = backoffMs(pace.settlements, this.#failures);
    this.#timer = setTimeout(() => this.sendAgain(), waitMs).unref();
  }

  #isTooLate(waiting: Waiting, nowMs: number): boolean {
    const { uselessMs, unknownSinceMs = nowMs } = waiting;
    if (nowMs > uselessMs) this.#drop(waiting, 'expired');
    else if (nowMs > unknownSinceMs + RESENT_MS) this.#drop(waiting, 'unknown');
    else return false;
    return true;
  }

  #drop({ settled }: Waiting, reason: DroppedReason): void {
    this.#count -= 1;
    this.#observer.settlementDropped(reason);
    settled.resolve({ outcome: 'dropped', reason });
  }
}

/** An error within a script, after which the settlements before it stay applied. */
function isOfScript(message: string): boolean {
  return message.includes('script');
}

/** How long the points of a charge count, or its slots are held. */
function longestSeconds({ charge: { buckets, heldMs = 0 } }: Settlement): number {
  const windows = buckets.map((bucket) => (isConcurrent(bucket) ? 0 : bucket.windowSeconds));
  return Math.max(heldMs / MS_PER_SECOND, ...windows);
}

/** In parts of at most so many buckets. */
function* callsOf(all: readonly Waiting[]): Generator<readonly Waiting[]> {
  let some: Waiting[] = [];
  let buckets = 0;
  for (const waiting of all) {
    const more = waiting.settlement.charge.buckets.length;
    if (some.length > 0 && buckets + more > MOST_BUCKETS) {
      yield some;
      some = [];
      buckets = 0;
    }
    some.push(waiting);
    buckets += more;
  }
  if (some.length > 0) yield some;
}
