import { setTimeout } from 'node:timers/promises';
import { withinMs } from '../../domain/awaitable.ts';
import { type Backoff, backoffMs } from '../../domain/backoff.ts';
import { US_PER_SECOND } from '../../domain/clock.ts';
import type { RecordedBucket, RecordedSum } from '../store.ts';
import { PendingSums, type Recorded } from './sums.ts';

/** Where sums are written. */
export interface JournalDatabase {
  /** Writes a batch once, however often it is called with this replica and sequence. */
  write(replica: string, sequence: number, sums: readonly RecordedSum[]): Promise<void>;
  /** Drops what nobody needs, in parts, as long as `goesOn` returns true after each of them. */
  tidy(goesOn: () => Promise<boolean>): Promise<void>;
  close(): Promise<void>;
}

/** Receives what the journal does. Calls must be quick and must not throw. */
export interface JournalObserver {
  /** A batch was written. */
  journalWritten(sums: number): void;
  /** A batch was not written and is tried again. Called once for each attempt. */
  journalFailed(error: Error): void;
  /** Old rows were not dropped, and are tried again in an hour. */
  journalUntidy(error: Error): void;
  /** Sums were dropped: too many waited, or PostgreSQL refuses their values. */
  journalDropped(points: number, error?: Error): void;
}

export interface JournalSettings {
  /** Time between two writes. */
  readonly flushMs: number;
  /** Of this process. No other has the same, and a restarted one has a new one. */
  readonly replica: string;
}

/** A batch that is written whole or not at all. */
interface Batch {
  readonly sequence: number;
  readonly sums: readonly RecordedSum[];
}

const US_PER_MINUTE = 60 * US_PER_SECOND;
/** A statement of about 4 MB, which PostgreSQL writes in about half a second. */
const SUMS_PER_BATCH = 20_000;
const RETRIES: Backoff = { firstMs: 500, longestMs: 10_000 };
const TIDY_MS = 3_600_000;
/** How long the last sums may take when the process ends, and then the end of the connections. */
const [CLOSE_MS, DISCONNECT_MS] = [5_000, 500];
/** SQLSTATE of values that PostgreSQL does not accept: data, constraint or a limit of the program. */
const UNACCEPTABLE = /^(22|23|54)/;

/**
 * Adds up what is charged, by the minute, and writes the sums. Nothing waits for it: while they cannot be written, the sums are kept in
 * memory, up to a number of them.
 */
export class Journal {
  readonly #database: JournalDatabase;
  readonly #settings: JournalSettings;
  readonly #observer: JournalObserver;
  readonly #pending: PendingSums;
  readonly #closing = new AbortController();
  readonly #running: Promise<void>;
  /** Batches that were taken out and are not written. Each keeps its sequence. */
  readonly #batches: Batch[] = [];
  #flushing: Promise<unknown> = Promise.resolve();
  #sequence = 0;
  #failures = 0;
  #waitingSinceMs: number | undefined;
  #added = 0;
  /** As if at some time in the last hour: a fleet may have no replica that lives for an hour, and not all of one begin at once. */
  #tidiedMs = performance.now() - Math.random() * TIDY_MS;
  /** Called with each batch that was written. */
  onWritten: () => void = () => {};

  constructor(
    database: JournalDatabase,
    settings: JournalSettings,
    observer: JournalObserver,
    pending = new PendingSums(),
  ) {
    this.#database = database;
    this.#settings = settings;
    this.#observer = observer;
    this.#pending = pending;
    this.#running = this.#run();
  }

  /** Age of the oldest sum that is not written; 0 if all are. */
  get lagSeconds(): number {
    return this.#waitingSinceMs === undefined ? 0 : (performance.now() - this.#waitingSinceMs) / 1_000;
  }

  /** How often points were added. */
  get added(): number {
    return this.#added;
  }

  /** @param atUs Unix time of the charge, by the store's clock */
  add(bucket: RecordedBucket, operation: string, atUs: number, recorded: Recorded, points: number): void {
    this.#waitingSinceMs ??= performance.now();
    if (points > 0) this.#added += 1;
    const isAdded = this.#pending.add(bucket, operation, Math.floor(atUs / US_PER_MINUTE), recorded, points);
    if (!isAdded) this.#observer.journalDropped(points);
  }

  /** Writes what is left, for a few seconds at most, whether the database answers or not. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    await withinMs(this.#writeRest(performance.now() + CLOSE_MS), CLOSE_MS);
    const lost = this.#batches
      .flatMap(({ sums }) => sums)
      .concat(this.#pending.take(Number.POSITIVE_INFINITY));
    if (lost.length > 0) this.#observer.journalDropped(pointsOf(lost));
    await withinMs(this.#database.close(), DISCONNECT_MS);
  }

  async #writeRest(untilMs: number): Promise<void> {
    await this.#running;
    while (this.#hasWork && performance.now() < untilMs) {
      await this.flush();
      if (this.#failures > 0) await setTimeout(RETRIES.firstMs / 2);
    }
  }

  get #hasWork(): boolean {
    return this.#batches.length > 0 || this.#pending.size > 0;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const waitMs = this.#failures === 0 ? this.#settings.flushMs : backoffMs(RETRIES, this.#failures);
      // A program that has nothing else to do may end.
      await setTimeout(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await this.flush();
      await this.#tidy();
    }
  }

  /** Writes all that has been added until now. Returns false if that failed, and is tried again later. */
  flush(): Promise<boolean> {
    const flushed = this.#flushing.then(() => this.#flush());
    this.#flushing = flushed;
    return flushed;
  }

  async #flush(): Promise<boolean> {
    const startedMs = performance.now();
    if (this.#batches.length === 0) this.#takeBatch();
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      if (!(await this.#write(batch))) return false;
      if (this.#batches.length === 0) this.#takeBatch();
    }
    this.#waitingSinceMs = this.#pending.size > 0 ? startedMs : undefined;
    return true;
  }

  #takeBatch(): void {
    const sums = this.#pending.take(SUMS_PER_BATCH);
    if (sums.length > 0) this.#batches.push({ sequence: ++this.#sequence, sums });
  }

  async #write(batch: Batch): Promise<boolean> {
    try {
      await this.#database.write(this.#settings.replica, batch.sequence, batch.sums);
    } catch (error) {
      this.#failed(batch, error as Error & { readonly code?: string });
      return false;
    }
    this.#failures = 0;
    this.#batches.shift();
    this.onWritten();
    this.#observer.journalWritten(batch.sums.length);
    return true;
  }

  /** One unacceptable value must not stop the others: its batch is divided until it stands alone, and is then dropped. */
  #failed({ sums }: Batch, error: Error & { readonly code?: string }): void {
    if (!UNACCEPTABLE.test(error.code ?? '')) {
      this.#failures += 1;
      this.#observer.journalFailed(error);
      return;
    }
    this.#batches.shift();
    if (sums.length <= 1) {
      this.#observer.journalDropped(pointsOf(sums), error);
      return;
    }
    const middle = Math.ceil(sums.length / 2);
    for (const part of [sums.slice(0, middle), sums.slice(middle)])
      this.#batches.push({ sequence: ++this.#sequence, sums: part });
  }

  async #tidy(): Promise<void> {
    if (this.#failures > 0 || performance.now() - this.#tidiedMs < TIDY_MS) return;
    this.#tidiedMs = performance.now();
    // Counts are written between two parts, and the process may end there.
    const goesOn = async () => (await this.flush()) && !this.#closing.signal.aborted;
    await this.#database.tidy(goesOn).catch((error: Error) => this.#observer.journalUntidy(error));
  }
}

function pointsOf(sums: readonly RecordedSum[]): number {
  return sums.reduce((points, sum) => points + sum.points, 0);
}
