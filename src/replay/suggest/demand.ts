import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Payer } from '../../domain/caller.ts';
import { type Limits, limitInForce } from '../../domain/limits/limits.ts';
import { plansOf } from '../../stages/buckets/plans.ts';
import { costIn } from '../../store/store.ts';
import type { LogEntry } from '../input/entry.ts';
import type { BucketStats } from '../measure/bucket-stats.ts';
import { PayerBook, replayedRows } from '../payers.ts';
import type { Retries } from '../replay.ts';

/** The demand in a log: the requests of every bucket, regardless of limits. */
export class Demand {
  readonly spool = new Spool();
  requests = 0;
  /** Requests that the log shows as refused. They are left out unless each line counts. */
  refusedInLog = 0;
  fromUs: number | undefined;
  toUs: number | undefined;
  readonly #limits: Limits;
  readonly #book: PayerBook;
  readonly #numbers = new Map<BucketStats, number>();
  readonly #largestCosts: number[] = [];
  readonly #retries: Retries;
  #nowUs = Number.NEGATIVE_INFINITY;

  constructor(limits: Limits, retries: Retries) {
    this.#limits = limits;
    this.#book = new PayerBook({ ...limits, rows: replayedRows(limits.rows) }, false);
    this.#retries = retries;
  }

  get buckets(): readonly BucketStats[] {
    return this.#book.stats;
  }

  /** The points that the most expensive request of a bucket needs room for, by the bucket's number. */
  largestCost(bucket: number): number {
    return this.#largestCosts[bucket] ?? 1;
  }

  take(entry: LogEntry): void {
    if (entry.wasRefused) this.refusedInLog += 1;
    if (entry.wasRefused && this.#retries !== 'none') return;
    const { cost, reserved = cost } = entry;
    this.#nowUs = Math.max(this.#nowUs, entry.atUs);
    this.fromUs ??= this.#nowUs;
    this.toUs = this.#nowUs;
    this.requests += 1;
    const { caller, buckets: asked } = this.#book.payerOf(entry);
    const buckets = asked.map((stats) => this.#ask(stats, caller, cost, reserved));
    this.spool.write({ atUs: this.#nowUs, cost, reserved, buckets });
  }

  end(): void {
    for (const stats of this.buckets) stats.end();
  }

  #ask(stats: BucketStats, caller: Payer, cost: number, reserved: number): number {
    let number = this.#numbers.get(stats);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(stats, number);
      this.#noteInForce(stats, caller);
    }
    stats.ask(cost, this.#nowUs);
    const most = Math.max(this.#largestCosts[number] ?? 0, costIn(stats.row, reserved));
    this.#largestCosts[number] = most;
    return number;
  }

  #noteInForce(stats: BucketStats, caller: Payer): void {
    const { row, id } = stats;
    const nowMs = this.#nowUs / 1000;
    const plan = plansOf(this.#limits, caller, nowMs).ofScope(row.scope);
    const { limit, shadowLimit } = limitInForce(this.#limits, row, id, plan, nowMs);
    stats.limit = limit;
    // A bucket that has both refuses requests, and so does the suggested limit.
    stats.shadowLimit = limit === undefined ? shadowLimit : undefined;
  }
}

/** A request, and the numbers of its buckets. */
interface SpooledRequest {
  readonly atUs: number;
  readonly cost: number;
  /** The points that had to have room, whatever the request has cost in the end. */
  readonly reserved: number;
  readonly buckets: readonly number[];
}

/** Time, cost, reservation and number of buckets, before the numbers of the buckets. */
const HEAD = 4;

const NUMBERS_PER_CHUNK = 131_072;

/** Requests in a temporary file that can be read repeatedly, because standard input can be read only once. */
class Spool {
  readonly #file: number;
  readonly #chunk = new Float64Array(NUMBERS_PER_CHUNK);
  #filled = 0;
  /** How many numbers each chunk of the file has. */
  readonly #lengths: number[] = [];

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'weir-replay-'));
    this.#file = openSync(join(folder, 'requests'), 'w+');
    // The open file stays readable after it is unlinked, and is deleted when this process ends.
    rmSync(folder, { recursive: true });
  }

  write({ atUs, cost, reserved, buckets }: SpooledRequest): void {
    if (this.#filled + HEAD + buckets.length > this.#chunk.length) this.#flush();
    this.#chunk.set([atUs, cost, reserved, buckets.length, ...buckets], this.#filled);
    this.#filled += HEAD + buckets.length;
  }

  /** Calls `use` for every request in the order of writing. Nothing may be written afterwards. */
  forEach(use: (request: SpooledRequest) => void): void {
    this.#flush();
    const bytes = Buffer.from(this.#chunk.buffer);
    let position = 0;
    for (const length of this.#lengths) {
      const end = length * Float64Array.BYTES_PER_ELEMENT;
      for (let read = 0; read < end; ) read += readSync(this.#file, bytes, read, end - read, position + read);
      position += end;
      for (let at = 0; at < length; ) at = this.#readOne(at, use);
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  /** @returns where the next request begins */
  #readOne(at: number, use: (request: SpooledRequest) => void): number {
    const [atUs = 0, cost = 0, reserved = 0, count = 0] = this.#chunk.subarray(at, at + HEAD);
    const next = at + HEAD + count;
    use({ atUs, cost, reserved, buckets: [...this.#chunk.subarray(at + HEAD, next)] });
    return next;
  }

  #flush(): void {
    if (this.#filled === 0) return;
    let written = 0;
    const bytes = Buffer.from(this.#chunk.buffer, 0, this.#filled * Float64Array.BYTES_PER_ELEMENT);
    while (written < bytes.length) written += writeSync(this.#file, bytes, written);
    this.#lengths.push(this.#filled);
    this.#filled = 0;
  }
}
