import type { PendingSum, RecordedBucket, RecordedLimit, RecordedSum } from '../store.ts';

/** What points are added for: a request that was admitted or refused, or its settlement. */
export type Recorded = 'admitted' | 'refused' | 'settled';

/** The sums of one minute, by the operation and the bucket's key. There are few operations, and many buckets. */
type Minute = Map<string, Map<string, PendingSum>>;

const SECONDS_PER_MINUTE = 60;
const MS_PER_MINUTE = 60_000;
/** 100,000 owners with four sums each: about 100 MB. */
const MOST_SUMS = 400_000;
/** While sums are joined, there may be so many times as many: each request adds one, and joins those that can be joined. */
const MEANWHILE = 1.05;
/** In every time zone, a day begins with one. */
const MINUTES_PER_QUARTER = 15;
const MINUTES_PER_DAY = 1_440;

/** Sums that are looked at for each one that is added while there are too many, at most: a fraction of a millisecond, for which a request waits. */
const LOOKED_AT_ONCE = 64;

/**
 * Sums that are not written yet. Their number is bounded: if there are too many, sums of the same quarter of an hour become one, as of the
 * last of their minutes, so that no point counts too short, or in another period. If that makes no room, sums of a day in UTC become one as
 * well. They are joined a few at a time, so there may be a few more until all are joined. What does not fit then is dropped.
 */
export class PendingSums {
  readonly #minutes = new Map<number, Minute>();
  readonly #most: number;
  #size = 0;
  #newest = 0;
  /** Looks at the next sum at each step. Goes on where it stopped. */
  #walk: Iterator<undefined, undefined> | undefined;
  /** The quarter of an hour in which nothing was left to join. */
  #joinedIn: number | undefined;

  constructor(most = MOST_SUMS) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns false if there is no room for a further sum. */
  add(
    bucket: RecordedBucket,
    operation: string,
    minute: number,
    recorded: Recorded,
    points: number,
  ): boolean {
    let { sum } = bucket;
    if (!this.#isOf(sum, bucket, operation, minute)) {
      sum = this.#get(bucket, operation, minute) ?? this.#begin(bucket, operation, minute);
      if (sum === undefined) return false;
      bucket.sum = sum;
    }
    sum.points += points;
    if (recorded === 'admitted') sum.requests += 1;
    else if (recorded === 'refused') sum.refused += 1;
    return true;
  }

  /** Takes out the oldest sums, at most so many. */
  take(most: number): readonly RecordedSum[] {
    this.#joinedIn = undefined;
    const taken: RecordedSum[] = [];
    for (const [minute, sums] of this.#minutes) {
      for (const byKey of sums.values())
        for (const [key, sum] of byKey) {
          if (taken.length >= most) return taken;
          taken.push(sum);
          sum.pendingIn = undefined;
          this.#size -= 1;
          byKey.delete(key);
        }
      this.#minutes.delete(minute);
    }
    return taken;
  }

  /** A sum for what a bucket has none for in this minute. */
  #begin(bucket: RecordedBucket, operation: string, minute: number): PendingSum | undefined {
    this.#newest = Math.max(this.#newest, minute);
    if (this.#size >= this.#most) {
      const moved = this.#moved(bucket, operation, minute, MINUTES_PER_QUARTER);
      if (moved !== undefined) return moved;
      this.#joinSome();
    }
    const most = this.#walk === undefined ? this.#most : MEANWHILE * this.#most;
    if (this.#size < most) return this.#make(bucket, operation, minute);
    return this.#moved(bucket, operation, minute, MINUTES_PER_DAY);
  }

  /** What there is of this bucket and operation as one sum, as of this minute at the earliest. */
  #moved(bucket: RecordedBucket, operation: string, minute: number, span: number): PendingSum | undefined {
    let other = this.#other(bucket, operation, minute, span);
    if (other === undefined) return undefined;
    let sum = this.#make(bucket, operation, minute);
    for (; other !== undefined; other = this.#other(bucket, operation, sum.minute, span))
      sum = this.#join(other, sum);
    return sum;
  }

  /** Whether this sum, which was added to last, is the one to add to. A copy of a bucket may have the sum of another key. */
  #isOf(
    sum: PendingSum | undefined,
    { key }: RecordedBucket,
    operation: string,
    minute: number,
  ): sum is PendingSum {
    return sum?.pendingIn === this && sum.minute === minute && sum.operation === operation && sum.key === key;
  }

  #get({ key }: RecordedBucket, operation: string, minute: number): PendingSum | undefined {
    return this.#minutes.get(minute)?.get(operation)?.get(key);
  }

  /** A sum of this bucket and operation of another minute, which may be joined with one of this minute. */
  #other(
    { key, record }: RecordedBucket,
    operation: string,
    minute: number,
    span: number,
  ): PendingSum | undefined {
    const of = Math.floor(minute / span);
    for (const [other, sums] of this.#minutes) {
      if (Math.floor(other / span) !== of || other === minute) continue;
      const sum = sums.get(operation)?.get(key);
      if (sum !== undefined && isAlike(record, minute, other, this.#newest)) return sum;
    }
    return undefined;
  }

  #make({ key, record, owner }: RecordedBucket, operation: string, minute: number): PendingSum {
    let sums = this.#minutes.get(minute);
    if (sums === undefined) {
      sums = new Map();
      this.#minutes.set(minute, sums);
    }
    let byKey = sums.get(operation);
    if (byKey === undefined) {
      byKey = new Map();
      sums.set(operation, byKey);
    }
    const sum = {
      key,
      record,
      owner,
      operation,
      minute,
      points: 0,
      requests: 0,
      refused: 0,
      pendingIn: this,
    };
    byKey.set(key, sum);
    this.#size += 1;
    return sum;
  }

  #remove(sum: PendingSum): void {
    const { key, operation, minute } = sum;
    sum.pendingIn = undefined;
    const sums = this.#minutes.get(minute);
    const byKey = sums?.get(operation);
    if (byKey?.delete(key)) this.#size -= 1;
    if (byKey?.size === 0) sums?.delete(operation);
    if (sums?.size === 0) this.#minutes.delete(minute);
  }

  #joinSome(): void {
    if (this.#joinedIn === quarterOf(this.#newest)) return;
    this.#walk ??= this.#joinAll();
    for (let looked = 0; looked < LOOKED_AT_ONCE && this.#size >= this.#most; looked++) {
      if (!this.#walk.next().done) continue;
      this.#walk = undefined;
      return;
    }
  }

  /** Joins by days when there is nothing to join by quarters of an hour, and ends when a pass by days makes little room. */
  *#joinAll(): Generator<undefined, undefined> {
    for (let span = MINUTES_PER_QUARTER; ; ) {
      const joined = yield* this.#pass(span);
      // Less would be room for fewer requests than a pass has to look at all sums.
      if (joined * LOOKED_AT_ONCE >= this.#most) span = MINUTES_PER_QUARTER;
      else if (span === MINUTES_PER_QUARTER) span = MINUTES_PER_DAY;
      else break;
    }
    this.#joinedIn = quarterOf(this.#newest);
  }

  /** Looks at one sum after another. Between two of them, others may be added and taken. What is added behind it is left to the next one. */
  *#pass(span: number): Generator<undefined, number> {
    let joined = 0;
    for (const sum of this.#all()) {
      const other = this.#other(sum, sum.operation, sum.minute, span);
      if (other !== undefined) {
        this.#join(sum, other);
        joined += 1;
      }
      yield;
    }
    return joined;
  }

  *#all(): Generator<PendingSum> {
    for (const sums of this.#minutes.values()) for (const byKey of sums.values()) yield* byKey.values();
  }

  /** Adds the older sum to the newer one, and returns that. */
  #join(one: PendingSum, other: PendingSum): PendingSum {
    const [older, newer] = one.minute < other.minute ? [one, other] : [other, one];
    newer.points += older.points;
    newer.requests += older.requests;
    newer.refused += older.refused;
    this.#remove(older);
    return newer;
  }
}

function quarterOf(minute: number): number {
  return Math.floor(minute / MINUTES_PER_QUARTER);
}

/** Whether what a limit counted in two minutes of a day counts alike from now on: in one period or about one window, or no more. */
function isAlike(record: RecordedLimit, minute: number, other: number, now: number): boolean {
  if (quarterOf(minute) === quarterOf(other)) return true;
  return Math.max(endOf(record, minute), now) === Math.max(endOf(record, other), now);
}

/** The minute in which it counts no more, at the latest. */
function endOf({ windowSeconds, calendar }: RecordedLimit, minute: number): number {
  if (calendar !== undefined) return calendar.at(minute * MS_PER_MINUTE).endMs / MS_PER_MINUTE;
  const window = windowSeconds / SECONDS_PER_MINUTE;
  return (Math.floor(minute / window) + 2) * window;
}
