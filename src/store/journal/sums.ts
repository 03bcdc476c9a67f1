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

/**
 * Sums that are not written yet. Their number is bounded: if there are too many, sums of the same quarter of an hour become one sum of its
 * last minute, so that no point counts too short, or in another period. What does not fit then is dropped.
 */
export class PendingSums {
  readonly #minutes = new Map<number, Minute>();
  readonly #most: number;
  #size = 0;

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
          this.#size -= 1;
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
    this.#joinQuarters();
    // Sums may have been joined in this minute.
    const joined = this.#get(bucket, operation, minute);
    if (joined !== undefined) return joined;
    if (this.#size < this.#most) return this.#make(bucket, operation, minute);
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
    this.#size += 1;
    return sum;
  }

  /** Joins the sums of each quarter of an hour in its last minute. Nothing that is joined already is joined again. */
  #joinQuarters(): void {
    const sums = [...this.#minutes].flatMap(([minute, byOperation]) =>
      minute === lastOfQuarter(minute)
        ? []
        : [...byOperation.values()].flatMap((byKey) => [...byKey.values()]),
    );
    for (const [minute] of [...this.#minutes])
      if (minute !== lastOfQuarter(minute)) this.#minutes.delete(minute);
    this.#size -= sums.length;
    for (const sum of sums) {
      const last = lastOfQuarter(sum.minute);
      const kept = this.#get(sum, sum.operation, last) ?? this.#make(sum, sum.operation, last);
      kept.points += sum.points;
      kept.requests += sum.requests;
      kept.refused += sum.refused;
    }
  }
}

function lastOfQuarter(minute: number): number {
  return minute - (minute % MINUTES_PER_QUARTER) + MINUTES_PER_QUARTER - 1;
}
