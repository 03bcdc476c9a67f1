import type { Later } from '../../domain/awaitable.ts';
import type { Charge, Decision } from '../store.ts';
import { Batch } from './batch.ts';

/** Buckets of one call: more would block Redis for its other clients for more than a few hundred µs. */
const MAX_BATCH_BUCKETS = 128;

/**
 * Batches the charges of one turn of the event loop: charges of requests read in the same poll phase share a call. With 16 of
 * them a decision costs a third less than with its own call, with 64 half (bench/RESULTS.md). Nothing waits for a timer: a turn
 * ends when all readable sockets have been read.
 */
export class TurnBatcher {
  readonly #groupOf: (key: string) => number;
  readonly #send: (batch: Batch, group: number) => void;
  readonly #inOneWrite: (send: () => void) => void;
  #batches = new Map<number, Batch>();
  readonly #end = () => this.flush();

  /**
   * `groupOf` names the Cluster slot of a key: charges of different slots cannot share a call. `inOneWrite` runs a
   * function so that the calls it makes reach each server together.
   */
  constructor(
    groupOf: (key: string) => number,
    send: (batch: Batch, group: number) => void,
    inOneWrite: (send: () => void) => void,
  ) {
    this.#groupOf = groupOf;
    this.#send = send;
    this.#inOneWrite = inOneWrite;
  }

  add(charge: Charge): Later<Decision> {
    if (this.#batches.size === 0) setImmediate(this.#end);
    const group = this.#groupOf(charge.buckets[0]?.key ?? '');
    let batch = this.#batches.get(group);
    if (batch !== undefined && batch.buckets + charge.buckets.length > MAX_BATCH_BUCKETS) {
      this.#send(batch, group);
      batch = undefined;
    }
    if (batch === undefined) {
      batch = new Batch();
      this.#batches.set(group, batch);
    }
    return batch.add(charge);
  }

  /** Sends the current batches. */
  flush(): void {
    const batches = this.#batches;
    this.#batches = new Map();
    this.#inOneWrite(() => {
      for (const [group, batch] of batches) this.#send(batch, group);
    });
  }
}
