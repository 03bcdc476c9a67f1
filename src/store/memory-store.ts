import { monotonicUs, US_PER_SECOND } from '../domain/clock.ts';
import { CoalescedLog } from './coalesced-log.ts';
import { isValidCharge } from './dispatch/valid-charge.ts';
import type { BucketCharge, BucketState, Charge, Decision, Store } from './store.ts';

/** A bucket of the charge that is being decided. */
interface Touched {
  readonly log: CoalescedLog;
  readonly limit: number;
  readonly isShadow: boolean;
  readonly hasRoom: boolean;
}

/**
 * How many buckets are looked at, for each one that is charged, whether they are empty by now. With two, the buckets
 * held are at most twice those that a window touches; and nothing is ever swept all at once.
 */
const SWEPT_PER_BUCKET = 2;

/** Counts in this process alone: the default for one gateway, and for a first try. The guarantees are those of Redis. */
export class MemoryStore implements Store {
  readonly #nowUs: () => number;
  readonly #logs = new Map<string, CoalescedLog>();
  #sweep = this.#logs.entries();
  #isClosed = false;

  /** `nowUs` is a clock for tests; the process's own monotonic clock unless told. */
  constructor(nowUs: () => number = monotonicUs) {
    this.#nowUs = nowUs;
  }

  /** Buckets held, those that a next sweep will drop included. */
  get size(): number {
    return this.#logs.size;
  }

  charge(charge: Charge): Decision {
    return this.#decide(charge, true);
  }

  peek(charge: Charge): Promise<Decision> {
    return Promise.resolve(this.#decide(charge, false));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#logs.clear();
  }

  #decide(charge: Charge, isSpending: boolean): Decision {
    if (this.#isClosed) return { outcome: 'uncounted', reason: 'closed' };
    if (!isValidCharge(charge)) return { outcome: 'uncounted', reason: 'invalid' };
    const nowUs = this.#nowUs();
    const windowUs = charge.windowSeconds * US_PER_SECOND;
    // First, because a bucket that is about to be spent from must not be dropped in between.
    if (isSpending) this.#sweepSome(nowUs, SWEPT_PER_BUCKET * charge.buckets.length);

    const { cost } = charge;
    const touched = charge.buckets.map((bucket) => this.#touch(bucket, cost, isSpending, nowUs, windowUs));
    const isAdmitted = touched.every(({ hasRoom, isShadow }) => hasRoom || isShadow);
    const isSpent = isSpending && isAdmitted;
    const buckets: BucketState[] = [];
    for (const { log, limit, hasRoom } of touched) {
      if (isSpent && hasRoom) log.spend(cost, limit, nowUs, windowUs);
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
    let log = this.#logs.get(key);
    if (log === undefined) {
      log = new CoalescedLog();
      this.#logs.set(key, log);
    }
    return log;
  }

  /** A peek leaves no trace, not even of the time at which it looked. */
  #copy(key: string): CoalescedLog {
    return this.#logs.get(key)?.copy() ?? new CoalescedLog();
  }

  /** Drops the next few buckets if they are empty, round and round. */
  #sweepSome(nowUs: number, count: number): void {
    for (let swept = 0; swept < count; swept++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#logs.entries();
        return;
      }
      const [key, log] = next.value;
      if (log.isEmptyAt(nowUs)) this.#logs.delete(key);
    }
  }
}
