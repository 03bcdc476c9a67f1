import { US_PER_SECOND } from '../../domain/clock.ts';
import type { Entry } from '../input/entry.ts';
import type { BucketStats } from '../measure/bucket-stats.ts';
import { PayerBook } from '../payers.ts';
import type { Retries } from '../replay.ts';
import { Spool } from './spool.ts';

/** The demand in a log: the requests of every bucket, regardless of limits. */
export class Demand {
  readonly spool = new Spool();
  requests = 0;
  /** Requests that the log shows as refused. They are left out unless each line counts. */
  refusedInLog = 0;
  fromUs: number | undefined;
  toUs: number | undefined;
  readonly #book: PayerBook;
  readonly #numbers = new Map<BucketStats, number>();
  readonly #largestCosts: number[] = [];
  readonly #retries: Retries;
  #nowUs = Number.NEGATIVE_INFINITY;

  constructor(windowSeconds: number, retries: Retries) {
    this.#book = new PayerBook(windowSeconds * US_PER_SECOND, false);
    this.#retries = retries;
  }

  get buckets(): readonly BucketStats[] {
    return this.#book.stats;
  }

  /** The most expensive request of a bucket, by the bucket's number. */
  largestCost(bucket: number): number {
    return this.#largestCosts[bucket] ?? 1;
  }

  take(entry: Entry): void {
    if (entry.wasRefused) this.refusedInLog += 1;
    if (entry.wasRefused && this.#retries !== 'none') return;
    const { cost } = entry;
    this.#nowUs = Math.max(this.#nowUs, entry.atUs);
    this.fromUs ??= this.#nowUs;
    this.toUs = this.#nowUs;
    this.requests += 1;
    const [bucket = -1, second = -1] = this.#book
      .payerOf(entry)
      .buckets.map((stats) => this.#ask(stats, cost));
    this.spool.write({ atUs: this.#nowUs, cost, bucket, second });
  }

  end(): void {
    for (const stats of this.buckets) stats.end();
  }

  #ask(stats: BucketStats, cost: number): number {
    let number = this.#numbers.get(stats);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(stats, number);
    }
    stats.ask(cost, this.#nowUs);
    this.#largestCosts[number] = Math.max(this.#largestCosts[number] ?? 0, cost);
    return number;
  }
}
