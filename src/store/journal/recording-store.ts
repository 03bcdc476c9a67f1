import { type Awaitable, andThenWith, withinMs } from '../../domain/awaitable.ts';
import { monotonicUs } from '../../domain/clock.ts';
import {
  type BucketCharge,
  type BucketState,
  type Charge,
  costIn,
  type Decision,
  finalCostIn,
  isDurable,
  isRecordedBucket,
  type Settled,
  type Settlement,
  type Store,
} from '../store.ts';
import type { Journal } from './journal.ts';
import type { Recovery } from './recovery.ts';

/** Unix time of the store in µs. */
export interface JournalClock {
  nowUs(): number;
  /** Of a time that a decision has. */
  unixUs(chargedAtUs: number): number;
  /** A decision was made at this time, just now. */
  set(chargedAtUs: number): void;
}

/** How long the end of the process waits for a recovery. Another replica, or the next one, begins it anew. */
const RECOVERY_CLOSE_MS = 2_000;

const ownUs = () => Date.now() * 1_000;

/** Of Redis, whose times are Unix times: the process's own clock, set by each charge. */
export class RedisClock implements JournalClock {
  #aheadUs = 0;
  #chargedAtUs = 0;

  nowUs(): number {
    return ownUs() + this.#aheadUs;
  }

  unixUs(chargedAtUs: number): number {
    return chargedAtUs;
  }

  /** Charges of one call have the same time, and the first of them is answered soonest. */
  set(chargedAtUs: number): void {
    if (chargedAtUs === this.#chargedAtUs) return;
    this.#chargedAtUs = chargedAtUs;
    this.#aheadUs = chargedAtUs - ownUs();
  }
}

/** Of the memory store, whose times begin with the process. */
export const PROCESS_CLOCK: JournalClock = {
  nowUs: ownUs,
  unixUs: (chargedAtUs) => ownUs() - (monotonicUs() - chargedAtUs),
  set: () => {},
};

/** A store whose decisions on durable limits are recorded. */
export class RecordingStore implements Store {
  readonly #store: Store;
  readonly #journal: Journal;
  readonly #clock: JournalClock;
  readonly #recovery: Pick<Recovery, 'close'> | undefined;

  constructor(store: Store, journal: Journal, clock: JournalClock, recovery?: Pick<Recovery, 'close'>) {
    this.#store = store;
    this.#journal = journal;
    this.#clock = clock;
    this.#recovery = recovery;
  }

  charge(charge: Charge): Awaitable<Decision> {
    const decision = this.#store.charge(charge);
    if (!isDurable(charge.buckets)) return decision;
    return andThenWith(decision, this.#record, charge);
  }

  peek(charge: Charge): Promise<Decision> {
    return this.#store.peek(charge);
  }

  settle(settlement: Settlement): Awaitable<Settled> {
    const settled = this.#store.settle(settlement);
    if (!isDurable(settlement.charge.buckets)) return settled;
    return andThenWith(settled, this.#recordSettled, settlement);
  }

  get slots() {
    return this.#store.slots;
  }

  /** The journal is closed last, because calls that are under way are recorded when they end. */
  async close(): Promise<void> {
    await this.#store.close();
    if (this.#recovery !== undefined) await withinMs(this.#recovery.close(), RECOVERY_CLOSE_MS);
    await this.#journal.close();
  }

  readonly #record = (decision: Decision, charge: Charge): Decision => {
    if (decision.outcome === 'admitted') this.#recordAdmitted(decision.chargedAtUs, charge);
    else if (decision.outcome === 'denied' && decision.degraded === undefined)
      this.#recordDenied(decision.buckets, charge);
    return decision;
  };

  #recordAdmitted(chargedAtUs: number, { buckets, cost, operation = '' }: Charge): void {
    const atUs = this.#clock.unixUs(chargedAtUs);
    this.#clock.set(chargedAtUs);
    for (const bucket of buckets) {
      if (isRecordedBucket(bucket))
        this.#journal.add(bucket, operation, atUs, 'admitted', costIn(bucket, cost));
    }
  }

  /** A refusal counts for the bucket that needs the longest wait, which the 429 names. */
  #recordDenied(states: readonly (BucketState | undefined)[], { buckets, operation = '' }: Charge): void {
    let longestUs = -1;
    let refusing: BucketCharge | undefined;
    for (let index = 0; index < buckets.length; index++) {
      const bucket = buckets[index];
      const waitUs = states[index]?.retryAfterUs ?? -1;
      if (bucket === undefined || bucket.shadow === true || waitUs <= longestUs) continue;
      [longestUs, refusing] = [waitUs, bucket];
    }
    if (refusing !== undefined && isRecordedBucket(refusing))
      this.#journal.add(refusing, operation, this.#clock.nowUs(), 'refused', 0);
  }

  /** What was given back is subtracted from the minute of the charge, and what was added counts now, as in the store. */
  readonly #recordSettled = (settled: Settled, settlement: Settlement): Settled => {
    if (settled.outcome !== 'settled') return settled;
    const { charge, chargedAtUs } = settlement;
    const { buckets, cost, operation = '' } = charge;
    for (const bucket of buckets) {
      const points = finalCostIn(bucket, settlement) - costIn(bucket, cost);
      if (points === 0 || !isRecordedBucket(bucket)) continue;
      const atUs =
        points < 0 && chargedAtUs !== undefined ? this.#clock.unixUs(chargedAtUs) : this.#clock.nowUs();
      this.#journal.add(bucket, operation, atUs, 'settled', points);
    }
    return settled;
  };
}
