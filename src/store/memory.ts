import { isSound } from './calls/soundness.ts';
import { CoalescedLog } from './coalesced-log.ts';
import type { BucketCharge, BucketState, Charge, Decision, Store } from './store.ts';

const US_PER_SECOND = 1_000_000;

/** A bucket of the charge that is being decided. */
interface Touched {
  readonly log: CoalescedLog;
  readonly limit: number;
  readonly isShadow: boolean;
  readonly hasRoom: boolean;
}

/** Counts in this process alone: the default for one gateway, and for a first try. The guarantees are those of Redis. */
export class MemoryStore implements Store {
  readonly #nowUs: () => number;
  /** Buckets touched since the last turn, and in the turn before; a turn lasts as long as the longest window. */
  #young = new Map<string, CoalescedLog>();
  #old = new Map<string, CoalescedLog>();
  #turnUs = 0;
  #nextTurnUs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  /** `nowUs` is a clock for tests; the process's own monotonic clock unless told. */
  constructor(nowUs: () => number = monotonicUs) {
    this.#nowUs = nowUs;
  }

  /** Buckets held, those that a next turn will drop included. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  charge(charge: Charge): Decision {
    return this.#decide(charge, true);
  }

  peek(charge: Charge): Promise<Decision> {
    return Promise.resolve(this.#decide(charge, false));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#young.clear();
    this.#old.clear();
  }

  #decide(charge: Charge, isSpending: boolean): Decision {
    if (this.#isClosed) return { outcome: 'uncounted', reason: 'closed' };
    if (!isSound(charge)) return { outcome: 'uncounted', reason: 'invalid' };
    const nowUs = this.#nowUs();
    const windowUs = charge.windowSeconds * US_PER_SECOND;
    if (isSpending) this.#turn(nowUs, windowUs);

    const { cost } = charge;
    const touched = charge.buckets.map((bucket) => this.#touch(bucket, cost, isSpending, nowUs, windowUs));
    const isAdmitted = touched.every(({ hasRoom, isShadow }) => hasRoom || isShadow);
    const isSpent = isSpending && isAdmitted;
    const buckets: BucketState[] = [];
    for (const { log, limit, hasRoom } of touched) {
      if (isSpent && hasRoom) log.spend(cost, nowUs, windowUs);
      buckets.push(log.state(cost, limit, hasRoom, nowUs, windowUs));
    }
    return { outcome: isAdmitted ? 'admitted' : 'denied', buckets };
  }

  #touch(
    { key, limit, shadow = false }: BucketCharge,
    cost: number,
    isSpending: boolean,
    nowUs: number,
    windowUs: number,
  ): Touched {
    const log = isSpending ? this.#log(key) : this.#copy(key);
    log.advance(nowUs, windowUs);
    return { log, limit, isShadow: shadow, hasRoom: log.hasRoom(cost, limit) };
  }

  #log(key: string): CoalescedLog {
    let log = this.#young.get(key);
    if (log !== undefined) return log;
    log = this.#old.get(key) ?? new CoalescedLog();
    this.#old.delete(key);
    this.#young.set(key, log);
    return log;
  }

  /** A peek leaves no trace, not even of the time at which it looked. */
  #copy(key: string): CoalescedLog {
    return (this.#young.get(key) ?? this.#old.get(key))?.copy() ?? new CoalescedLog();
  }

  /** Drops the buckets that nobody touched for a whole turn: they are empty by now. */
  #turn(nowUs: number, windowUs: number): void {
    this.#turnUs = Math.max(this.#turnUs, windowUs);
    if (nowUs < this.#nextTurnUs) {
      this.#nextTurnUs = Math.min(this.#nextTurnUs, nowUs + this.#turnUs);
      return;
    }
    this.#old = this.#young;
    this.#young = new Map();
    this.#nextTurnUs = nowUs + this.#turnUs;
  }
}

function monotonicUs(): number {
  return Math.floor(performance.now() * 1000);
}
