import { monotonicUs } from '../domain/clock.ts';
import type { Calendar } from '../domain/limits/calendar.ts';
import { CoalescedLog } from './coalesced-log.ts';
import { type HeldSlots, OwnSlots, slotState } from './in-flight/held-slots.ts';
import { LastingSlots } from './in-flight/lasting-slots.ts';
import { PeriodCount } from './period-count.ts';
import { SettlementMarks } from './settlement-marks.ts';
import {
  type BucketCharge,
  type BucketState,
  type Charge,
  costIn,
  type Decision,
  type DroppedReason,
  finalCostIn,
  type Holder,
  isConcurrent,
  isValidCharge,
  isValidSettlement,
  NO_REPLICA,
  type Settled,
  type SettledState,
  type Settlement,
  type Store,
  windowUsOf,
} from './store.ts';
import { type StoreObserver, silentObserver } from './store-observer.ts';

/** Where a memory store keeps its buckets. */
export interface BucketLogs<Log = CoalescedLog> {
  get(key: string): Log | undefined;
  /** The bucket of a key, which is created if needed. */
  renew(key: string, make: (key: string) => Log): Log;
  clear(): void;
  /** Checks `count` buckets and drops the expired ones. Not needed where the number of buckets is bounded. */
  sweep?(nowUs: number, count: number): void;
}

/** As many buckets as there are, until they expire. */
export class SweptLogs<Log extends CoalescedLog | PeriodCount = CoalescedLog> implements BucketLogs<Log> {
  readonly #logs = new Map<string, Log>();
  #sweep = this.#logs.values();

  /** The number of buckets held, including expired ones that were not swept yet. */
  get size(): number {
    return this.#logs.size;
  }

  get(key: string): Log | undefined {
    return this.#logs.get(key);
  }

  renew(key: string, make: (key: string) => Log): Log {
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

/** A bucket of the current charge. */
interface Touched {
  /** Undefined for one that counts concurrent requests. */
  readonly log: CoalescedLog | PeriodCount | undefined;
  readonly cost: number;
  readonly limit: number;
  readonly windowUs: number;
  /** By the clock of the bucket. */
  readonly nowUs: number;
  readonly isShadow: boolean;
  readonly hasRoom: boolean;
  readonly holders?: readonly Holder[];
}

/**
 * How many buckets are checked for expiry per charged bucket. With two, at most twice the buckets of a window are held, and
 * there is never a long sweep.
 */
const SWEPT_PER_BUCKET = 2;

const newLog = (key: string) => new CoalescedLog(key);
const newCount = (key: string) => new PeriodCount(key);

/** Counts in this process only: the default for a single gateway. It gives the same guarantees as the Redis store. */
export class MemoryStore implements Store {
  readonly #nowUs: () => number;
  readonly #unixUs: () => number;
  readonly #logs: BucketLogs;
  readonly #counts: BucketLogs<PeriodCount>;
  readonly slots: HeldSlots;
  readonly #observer: StoreObserver;
  readonly #marks = new SettlementMarks();
  readonly #held = new LastingSlots();
  #isClosed = false;

  /**
   * @param nowUs a clock for tests and replays, which gives Unix time if there are periods. By default windows pass with the monotonic clock
   *   of the process, and periods with its Unix time
   * @param slots by default its own; the slots of another store that handles the same requests
   * @param counts where it keeps buckets of periods
   * @param observer receives the events of settlements
   */
  constructor(
    nowUs?: (() => number) | undefined,
    logs: BucketLogs = new SweptLogs(),
    slots: HeldSlots = new OwnSlots(),
    counts: BucketLogs<PeriodCount> = new SweptLogs(),
    observer: StoreObserver = silentObserver,
  ) {
    this.#observer = observer;
    this.#nowUs = nowUs ?? monotonicUs;
    this.#unixUs = nowUs ?? (() => Date.now() * 1000);
    this.#logs = logs;
    this.slots = slots;
    this.#counts = counts;
  }

  charge(charge: Charge): Decision {
    return this.#decide(charge, true);
  }

  peek(charge: Charge): Promise<Decision> {
    return Promise.resolve(this.#decide(charge, false));
  }

  settle(settlement: Settlement): Settled {
    if (this.#isClosed) return this.#dropped('closed');
    if (!isValidSettlement(settlement)) return this.#dropped('invalid');
    const nowUs = this.#nowUs();
    const { charge, id, endsAtUs = Number.POSITIVE_INFINITY } = settlement;
    const outcome = this.#marks.settle(id, settlement, nowUs, nowUs > endsAtUs);
    if (outcome === 'settled') this.#held.free(settlement);
    const buckets = charge.buckets.map((bucket) =>
      isConcurrent(bucket) ? undefined : this.#settleIn(bucket, settlement, outcome === 'settled', nowUs),
    );
    this.#observer.settled(outcome, Math.max(0, ...buckets.map((state) => state?.overPoints ?? 0)));
    return { outcome, buckets };
  }

  #dropped(reason: DroppedReason): Settled {
    this.#observer.settlementDropped(reason);
    return { outcome: 'dropped', reason };
  }

  #settleIn(bucket: BucketCharge, settlement: Settlement, isApplied: boolean, nowUs: number): SettledState {
    const { key, limit, calendar } = bucket;
    if (calendar !== undefined) return this.#settleCount(bucket, calendar, settlement, isApplied, nowUs);
    const windowUs = windowUsOf(bucket);
    const cost = costIn(bucket, settlement.charge.cost);
    const more = isApplied ? finalCostIn(bucket, settlement) - cost : 0;
    const log = more > 0 ? this.#logs.renew(key, newLog) : (this.#logs.get(key) ?? newLog(key));
    const { chargedAtUs } = settlement;
    let over = 0;
    if (more > 0) over = log.addOver(more, limit, nowUs, windowUs);
    else if (more < 0 && chargedAtUs === undefined) log.giveBackOldest(-more, nowUs, windowUs);
    else if (more < 0) log.giveBack(-more, cost, limit, chargedAtUs ?? 0, nowUs, windowUs);
    return log.settledState(limit, over, nowUs, windowUs);
  }

  #settleCount(
    bucket: BucketCharge,
    calendar: Calendar,
    settlement: Settlement,
    isApplied: boolean,
    nowUs: number,
  ): SettledState {
    const { key, limit } = bucket;
    const { charge, chargedAtUs } = settlement;
    const more = isApplied ? finalCostIn(bucket, settlement) - costIn(bucket, charge.cost) : 0;
    const count = more > 0 ? this.#counts.renew(key, newCount) : (this.#counts.get(key) ?? newCount(key));
    const unixUs = this.#unixUs();
    count.enter(calendar.around(unixUs / 1000), unixUs);
    const chargedUs = chargedAtUs === undefined ? undefined : unixUs - (nowUs - chargedAtUs);
    const overPoints = count.settle(more, limit, chargedUs, unixUs);
    const { remaining, resetAfterUs } = count.state(limit, true, unixUs);
    return { remaining, resetAfterUs, overPoints };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#logs.clear();
    this.#counts.clear();
    this.#held.clear();
  }

  #decide(charge: Charge, isSpending: boolean): Decision {
    if (this.#isClosed) return { outcome: 'uncounted', reason: 'closed' };
    if (!isValidCharge(charge)) return { outcome: 'uncounted', reason: 'invalid' };
    const nowUs = this.#nowUs();
    // First, because a bucket must not be dropped between being looked up and being charged.
    if (isSpending) this.#logs.sweep?.(nowUs, SWEPT_PER_BUCKET * charge.buckets.length);

    const touched = charge.buckets.map((bucket) =>
      isConcurrent(bucket)
        ? this.#touchSlots(bucket, isSpending, nowUs)
        : this.#touch(bucket, costIn(bucket, charge.cost), isSpending, nowUs),
    );
    const isAdmitted = touched.every(({ hasRoom, isShadow }) => hasRoom || isShadow);
    const isSpent = isSpending && isAdmitted;
    const buckets = touched.map((one) => stateOf(one, isSpent && one.hasRoom));
    if (isSpent && charge.hold !== undefined) this.slots.take(charge, buckets);
    if (isSpent && charge.heldMs !== undefined) this.#held.take(charge, buckets, nowUs);
    return isAdmitted ? { outcome: 'admitted', buckets, chargedAtUs: nowUs } : { outcome: 'denied', buckets };
  }

  #touch(bucket: BucketCharge, cost: number, isSpending: boolean, nowUs: number): Touched {
    const { key, limit, shadow = false, calendar } = bucket;
    if (calendar !== undefined) return this.#touchCount(bucket, calendar, cost, isSpending);
    const windowUs = windowUsOf(bucket);
    const log = isSpending ? this.#logs.renew(key, newLog) : this.#copy(key);
    log.advance(nowUs, windowUs);
    return { log, cost, limit, windowUs, nowUs, isShadow: shadow, hasRoom: log.hasRoom(cost, limit) };
  }

  #touchCount(
    { key, limit, shadow = false }: BucketCharge,
    calendar: Calendar,
    cost: number,
    isSpending: boolean,
  ): Touched {
    const nowUs = this.#unixUs();
    if (isSpending) this.#counts.sweep?.(nowUs, SWEPT_PER_BUCKET);
    const log = isSpending
      ? this.#counts.renew(key, newCount)
      : (this.#counts.get(key)?.copy() ?? newCount(key));
    log.enter(calendar.around(nowUs / 1000), nowUs);
    return { log, cost, limit, windowUs: 0, nowUs, isShadow: shadow, hasRoom: log.hasRoom(cost, limit) };
  }

  /** Its limit becomes what is free of it. */
  #touchSlots({ key, limit, shadow = false }: BucketCharge, isSpending: boolean, nowUs: number): Touched {
    const held = this.#held.of(key, nowUs);
    const free = limit - this.slots.of(key) - held;
    const touched = {
      log: undefined,
      cost: 1,
      limit: free,
      windowUs: 0,
      nowUs: 0,
      isShadow: shadow,
      hasRoom: free > 0,
    };
    if (isSpending) return touched;
    const own = this.slots.holdersOf(key);
    return { ...touched, holders: held === 0 ? own : [...own, { replica: NO_REPLICA, slots: held }] };
  }

  /** A peek changes nothing, not even the bucket's time. */
  #copy(key: string): CoalescedLog {
    return this.#logs.get(key)?.copy() ?? newLog(key);
  }
}

/** Spends the charge in this bucket if `isSpent`. Slots are taken all together. */
function stateOf(
  { log, cost, limit, windowUs, nowUs, hasRoom, holders }: Touched,
  isSpent: boolean,
): BucketState {
  if (log === undefined) return slotState(Math.max(0, isSpent ? limit - 1 : limit), hasRoom, holders);
  if (log instanceof PeriodCount) {
    if (isSpent) log.spend(cost, nowUs);
    return log.state(limit, hasRoom, nowUs);
  }
  if (isSpent) log.spend(cost, limit, nowUs, windowUs);
  return log.state(cost, limit, hasRoom, nowUs, windowUs);
}
