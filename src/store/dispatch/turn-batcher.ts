import { type Awaitable, andThen, Later } from '../../domain/awaitable.ts';
import type { Charge, Decision, UncountedReason } from '../store.ts';

/** Charges that share one script call, and their decisions, which come later. Settled once. */
export class Batch {
  readonly kind: 'charge' | 'peek' | 'probe';
  readonly charges: Charge[] = [];
  /** The number of buckets of all charges. */
  buckets = 0;
  readonly #decisions: Later<Decision>[] = [];
  #isSettled = false;

  constructor(kind: 'charge' | 'peek' | 'probe' = 'charge') {
    this.kind = kind;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  add(charge: Charge): Later<Decision> {
    this.charges.push(charge);
    this.buckets += charge.buckets.length;
    const decision = new Later<Decision>();
    this.#decisions.push(decision);
    return decision;
  }

  /** `decisions` in the order of the charges. Drops the charges: the batch itself stays in memory until its deadline. */
  settle(decisions: readonly Decision[]): void {
    this.#isSettled = true;
    this.charges.length = 0;
    const waiting = this.#decisions.splice(0);
    for (let index = 0; index < waiting.length; index++)
      waiting[index]?.resolve(decisions[index] ?? { outcome: 'uncounted', reason: 'error' });
  }

  /** Leaves the decision of one charge to another call. What `settle` has for it is dropped. */
  defer(index: number, decision: Awaitable<Decision>): void {
    const waiting = this.#decisions[index];
    this.#decisions[index] = new Later();
    void andThen(decision, (late) => waiting?.resolve(late));
  }

  giveUp(reason: UncountedReason): void {
    this.#isSettled = true;
    for (const decision of this.#decisions.splice(0)) decision.resolve({ outcome: 'uncounted', reason });
  }
}

/** Buckets of one call: more would block Redis for its other clients for more than a few hundred µs. */
const MAX_BATCH_BUCKETS = 128;

/** A call of fewer buckets costs more than it gains by going ahead of its turn. */
const MIN_AHEAD_BUCKETS = 16;

/**
 * Batches the charges of one turn of the event loop: charges of requests read in the same poll phase share a call. With 16 of
 * them a decision costs a third less than with its own call, with 64 half (bench/RESULTS.md). Nothing waits for a timer: a turn
 * ends when all readable sockets have been read.
 *
 * If Redis has answered everything, half of a turn goes ahead as a call of its own. Otherwise Redis would wait while this process
 * reads requests, and this process while Redis decides: with two calls under way, both work.
 */
export class TurnBatcher {
  readonly #groupOf: (key: string) => number;
  readonly #send: (batch: Batch, group: number) => void;
  readonly #inOneWrite: (send: () => void) => void;
  readonly #sendMore: () => void;
  #batches = new Map<number, Batch>();
  /** The calls that had no answer when a turn last ended, and those that have left since. */
  #sent: readonly Batch[] = [];
  /** The most buckets that had no answer at once since Redis had last answered everything. 0 once half of them have gone ahead. */
  #mostSent = 0;
  #hasMore = false;
  #isEnding = false;
  readonly #end = () => this.flush();

  /**
   * `groupOf` names the Cluster slot of a key: charges of different slots cannot share a call. `inOneWrite` runs a
   * function so that the calls it makes reach each server together. `sendMore` makes further calls behind the charges of a turn.
   */
  constructor(
    groupOf: (key: string) => number,
    send: (batch: Batch, group: number) => void,
    inOneWrite: (send: () => void) => void,
    sendMore: () => void = () => {},
  ) {
    this.#groupOf = groupOf;
    this.#send = send;
    this.#inOneWrite = inOneWrite;
    this.#sendMore = sendMore;
  }

  /** Has `sendMore` called at the end of this turn, even if there are no charges. */
  wake(): void {
    this.#hasMore = true;
    this.#endSoon();
  }

  add(charge: Charge): Later<Decision> {
    this.#endSoon();
    const group = this.#groupOf(charge.buckets[0]?.key ?? '');
    let batch = this.#batches.get(group);
    if (batch !== undefined && batch.buckets + charge.buckets.length > MAX_BATCH_BUCKETS) {
      this.#sent = [...this.#sent, batch];
      this.#send(batch, group);
      batch = undefined;
    }
    if (batch === undefined) {
      batch = new Batch();
      this.#batches.set(group, batch);
    }
    const decision = batch.add(charge);
    if (batch.buckets >= MIN_AHEAD_BUCKETS && this.#goesAhead(batch)) {
      this.#batches.delete(group);
      this.#sent = [batch];
      this.#mostSent = 0;
      this.#send(batch, group);
    }
    return decision;
  }

  #goesAhead({ buckets }: Batch): boolean {
    const isHalf = this.#mostSent > 0 && 2 * buckets >= this.#mostSent;
    return isHalf && this.#sent.every(({ isSettled }) => isSettled);
  }

  #endSoon(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    setImmediate(this.#end);
  }

  /** Sends the current batches. */
  flush(): void {
    const batches = this.#batches;
    this.#batches = new Map();
    this.#isEnding = false;
    this.#note(batches);
    this.#inOneWrite(() => {
      for (const [group, batch] of batches) this.#send(batch, group);
      if (this.#hasMore) this.#sendMore();
      this.#hasMore = false;
    });
  }

  #note(batches: ReadonlyMap<number, Batch>): void {
    const sent = this.#sent.filter(({ isSettled }) => !isSettled);
    const isWaiting = sent.length > 0;
    sent.push(...batches.values());
    let buckets = 0;
    for (const one of sent) buckets += one.buckets;
    this.#sent = sent;
    this.#mostSent = isWaiting ? Math.max(this.#mostSent, buckets) : buckets;
  }
}
