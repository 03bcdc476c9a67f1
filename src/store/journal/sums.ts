import type { RecordedBucket } from '../store.ts';

/** What one operation did to one bucket within a minute. */
export interface RecordedSum extends RecordedBucket {
  readonly operation: string;
  /** Minutes since 1970. */
  readonly minute: number;
  /** What was charged and settled, in the unit of the limit. Negative if more was given back than charged. */
  points: number;
  /** Admitted requests. */
  requests: number;
  /** Requests that this bucket refused. */
  refused: number;
}

/** What points are added for: a request that was admitted or refused, or its settlement. */
export type Recorded = 'admitted' | 'refused' | 'settled';

/** The sums of one minute, by the operation and the bucket's key. There are few operations, and many buckets. */
type Minute = Map<string, Map<string, RecordedSum>>;

/** About 60 MB. */
const MOST_SUMS = 300_000;
/** In every time zone, a day begins with one. */
const MINUTES_PER_QUARTER = 15;

/** Sums that are joined for each one that is added while there are too many: a fraction of a millisecond, for which a request waits. */
const JOINED_AT_ONCE = 64;

/**
 * Sums that are not written yet. Their number is bounded: if there are too many, sums of the same quarter of an hour become one sum of its
 * last minute, so that no point counts too short, or in another period. They are joined a few at a time, so there may be a few more until
 * all are joined. What does not fit then is dropped.
 */
export class PendingSums {
  readonly #minutes = new Map<number, Minute>();
  readonly #most: number;
  #size = 0;
  /** Sums of minutes that are not the last of their quarter. */
  #joinable = 0;
  /** Goes on where it stopped. What is added behind it is left to the next one. */
  #walk: Iterator<RecordedSum, undefined> | undefined;

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
    const sum = this.#find(bucket, operation, minute);
    if (sum === undefined) return false;
    sum.points += points;
    if (recorded === 'admitted') sum.requests += 1;
    else if (recorded === 'refused') sum.refused += 1;
    return true;
  }

  /** Takes out the oldest sums, at most so many. */
  take(most: number): readonly RecordedSum[] {
    const taken: RecordedSum[] = [];
    for (const [minute, sums] of this.#minutes) {
      for (const byKey of sums.values())
        for (const [key, sum] of byKey) {
          if (taken.length >= most) return taken;
          taken.push(sum);
          this.#count(minute, -1);
          byKey.delete(key);
        }
      this.#minutes.delete(minute);
    }
    return taken;
  }

  #find(bucket: RecordedBucket, operation: string, minute: number): RecordedSum | undefined {
    const found = this.#get(bucket, operation, minute);
    if (found !== undefined) return found;
    if (this.#size < this.#most) return this.#make(bucket, operation, minute);
    this.#joinSome();
    // Sums may have been joined in this minute.
    const joined = this.#get(bucket, operation, minute);
    if (joined !== undefined) return joined;
    if (this.#size < this.#most || this.#joinable > 0) return this.#make(bucket, operation, minute);
    return this.#get(bucket, operation, lastOfQuarter(minute));
  }

  #get({ key }: RecordedBucket, operation: string, minute: number): RecordedSum | undefined {
    return this.#minutes.get(minute)?.get(operation)?.get(key);
  }

  #make(bucket: RecordedBucket, operation: string, minute: number): RecordedSum {
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
    const { key, record, owner } = bucket;
    const sum = { key, record, owner, operation, minute, points: 0, requests: 0, refused: 0 };
    byKey.set(key, sum);
    this.#count(minute, 1);
    return sum;
  }

  #count(minute: number, more: number): void {
    this.#size += more;
    if (minute !== lastOfQuarter(minute)) this.#joinable += more;
  }

  /** Joins some of the sums of each quarter of an hour in its last minute. Nothing that is joined already is joined again. */
  #joinSome(): void {
    for (let joined = 0; joined < JOINED_AT_ONCE && this.#joinable > 0; ) {
      this.#walk ??= this.#takeJoinable();
      const { value: sum, done } = this.#walk.next();
      if (done) this.#walk = undefined;
      else {
        joined += 1;
        this.#join(sum);
      }
    }
  }

  /** Takes out one sum after another. Between two of them, others may be added, and all sums of a minute may be taken. */
  *#takeJoinable(): Generator<RecordedSum, undefined> {
    for (const [minute, sums] of this.#minutes) {
      if (minute === lastOfQuarter(minute)) continue;
      yield* this.#takeFrom(minute, sums);
      if (sums.size === 0 && this.#minutes.get(minute) === sums) this.#minutes.delete(minute);
    }
  }

  *#takeFrom(minute: number, sums: Minute): Generator<RecordedSum> {
    for (const [operation, byKey] of sums) {
      for (const [key, sum] of byKey) {
        byKey.delete(key);
        this.#count(minute, -1);
        yield sum;
      }
      if (byKey.size === 0) sums.delete(operation);
    }
  }

  #join(sum: RecordedSum): void {
    const last = lastOfQuarter(sum.minute);
    const kept = this.#get(sum, sum.operation, last) ?? this.#make(sum, sum.operation, last);
    kept.points += sum.points;
    kept.requests += sum.requests;
    kept.refused += sum.refused;
  }
}

function lastOfQuarter(minute: number): number {
  return minute - (minute % MINUTES_PER_QUARTER) + MINUTES_PER_QUARTER - 1;
}
