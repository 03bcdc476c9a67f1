import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { US_PER_SECOND } from '../../domain/clock.ts';
import type { Entry } from '../input/entry.ts';
import type { BucketStats } from '../measure/bucket-stats.ts';
import { PayerBook } from '../payers.ts';
import type { Retries } from '../replay.ts';

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

/** A request for one or two buckets, by their numbers. */
interface SpooledRequest {
  readonly atUs: number;
  readonly cost: number;
  readonly bucket: number;
  /** -1 if there is no second bucket. */
  readonly second: number;
}

/** Numbers per request. */
const FIELDS = 4;

const REQUESTS_PER_CHUNK = 32_768;

/** Requests in a temporary file that can be read repeatedly, because standard input can be read only once. */
class Spool {
  readonly #file: number;
  readonly #chunk = new Float64Array(REQUESTS_PER_CHUNK * FIELDS);
  #filled = 0;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'weir-replay-'));
    this.#file = openSync(join(folder, 'requests'), 'w+');
    // The open file stays readable after it is unlinked, and is deleted when this process ends.
    rmSync(folder, { recursive: true });
  }

  write({ atUs, cost, bucket, second }: SpooledRequest): void {
    this.#chunk.set([atUs, cost, bucket, second], this.#filled);
    this.#filled += FIELDS;
    if (this.#filled === this.#chunk.length) this.#flush();
  }

  /** Calls `use` for every request in the order of writing. Nothing may be written afterwards. */
  forEach(use: (request: SpooledRequest) => void): void {
    this.#flush();
    const chunk = this.#chunk;
    const bytes = Buffer.from(chunk.buffer);
    let position = 0;
    for (;;) {
      const read = readSync(this.#file, bytes, 0, bytes.length, position);
      if (read === 0) return;
      position += read;
      for (let at = 0; at < read / Float64Array.BYTES_PER_ELEMENT; at += FIELDS) {
        use({
          atUs: chunk[at] ?? 0,
          cost: chunk[at + 1] ?? 0,
          bucket: chunk[at + 2] ?? 0,
          second: chunk[at + 3] ?? 0,
        });
      }
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #flush(): void {
    let written = 0;
    const bytes = Buffer.from(this.#chunk.buffer, 0, this.#filled * Float64Array.BYTES_PER_ELEMENT);
    while (written < bytes.length) written += writeSync(this.#file, bytes, written);
    this.#filled = 0;
  }
}
