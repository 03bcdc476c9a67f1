import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { withinMs } from '../../domain/awaitable.ts';
import { type Backoff, backoffMs } from '../../domain/backoff.ts';
import type { Journal } from './journal.ts';
import type { JournaledCounts, Recovered, Work } from './journaled-counts.ts';
import { PuttingBack } from './putting-back.ts';
import type { RecoveryTables } from './recovery-tables.ts';
import { Standing } from './standing.ts';

/** Receives what a recovery does. Calls must be quick and must not throw. */
export interface RecoveryObserver {
  recovered(recovered: Recovered, seconds: number): void;
  /** An attempt failed, and is repeated. */
  recoveryFailed(error: Error): void;
  /** PostgreSQL was not reached for a while: charges of durable limits count by what the store has. */
  countsGoOn(): void;
  /** The store has everything: nothing is lost any more. */
  countsComplete(): void;
}

/** How often a replica asks whether it should write what it has counted. */
const ATTEND_MS = 500;
/** A replica that attends no more counts as dead after 2.5 s (statements.ts), which is therefore waited for. */
const FLUSHED_MS = 4_000;
/** How long durable limits wait for a PostgreSQL that cannot be reached. */
const PATIENCE_MS = 5_000;
/**
 * A replica that goes on ends all recoveries, also its own, which could otherwise read from a dead PostgreSQL for two minutes. If it reaches
 * PostgreSQL rarely, it would end each of them. So it waits for twice as long after each time, up to so many times as long.
 */
const MOST_PATIENCE = 12;
const RETRIES: Backoff = { firstMs: 200, longestMs: 1_000 };

/**
 * Puts back what the store has lost of durable counts. One replica does so, after every replica has written what it has counted. Until then
 * no durable limit counts anything in the store, except at a replica that cannot reach PostgreSQL: it goes on with what the store has.
 */
export class Recovery {
  readonly #replica = randomUUID();
  readonly #tables: RecoveryTables;
  readonly #journal: Journal;
  readonly #counts: JournaledCounts;
  readonly #observer: RecoveryObserver;
  readonly #closing = new AbortController();
  readonly #attending: Promise<void>;
  readonly #standing: Standing;
  readonly #impatience: NodeJS.Timeout;
  /** How often PATIENCE_MS have passed since PostgreSQL was reached, and how often they pass before this replica goes on. */
  #waited = 0;
  #patience = 1;
  #flushed: number | undefined;
  #attendances = 0;
  #running: Promise<void> | undefined;
  #isWanted = false;
  /** Whether a recovery of this replica waits for writes. It does not for long. */
  #isFlushing = false;
  #isLost = false;

  constructor(tables: RecoveryTables, journal: Journal, counts: JournaledCounts, observer: RecoveryObserver) {
    this.#tables = tables;
    this.#journal = journal;
    this.#counts = counts;
    this.#observer = observer;
    this.#standing = new Standing(journal);
    this.#impatience = setInterval(() => void this.#goOn(), PATIENCE_MS).unref();
    // What has waited may take longer to write.
    journal.onWritten = () => this.#waitAnew();
    this.#attending = this.#attendAgain();
  }

  /** Whether the store has lost something that is not put back. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Looks what the store has lost, and puts it back. */
  want(): void {
    this.#isWanted = true;
    if (this.#closing.signal.aborted) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** As `LossListener` has it. */
  arrived(server: string): void {
    this.#standing.arrived(server);
    if (this.#standing.isInDoubt) this.want();
  }

  left(): void {
    this.#standing.left();
  }

  /** Resolves when nothing is being put back. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#impatience);
    await Promise.all([this.#attending, this.#running]);
  }

  async #run(): Promise<void> {
    let failures = 0;
    while (this.#isWanted && !this.#closing.signal.aborted) {
      this.#isWanted = false;
      try {
        await this.#recover();
        failures = 0;
        this.#patience = 1;
        this.#observer.countsComplete();
      } catch (error) {
        this.#isWanted = true;
        failures += 1;
        this.#observer.recoveryFailed(error as Error);
        await this.#pause(backoffMs(RETRIES, failures));
      }
    }
  }

  async #recover(): Promise<void> {
    // Without a look at PostgreSQL, which may be away.
    const isComplete = await this.#counts.isComplete();
    this.#setLost(!isComplete);
    if (isComplete && !this.#standing.isInDoubt) return;
    const startMs = performance.now();
    await this.#tables.alone(async (client, speak) => {
      const { isInDoubt } = this.#standing;
      let found: Recovered | undefined;
      const work: Work = async (store, server) => {
        this.#setLost(true);
        if (isInDoubt) this.#standing.restoring();
        await this.#flushAll(client, server);
        const puttingBack = new PuttingBack(this.#tables, store);
        await puttingBack.all(client);
        found = puttingBack.found;
      };
      await this.#counts.recover(randomUUID(), isInDoubt, work, speak).catch((error) => {
        if (isInDoubt) this.#standing.leftOut();
        throw error;
      });
      this.#setLost(false);
      if (found !== undefined) this.#observer.recovered(found, (performance.now() - startMs) / 1_000);
    });
  }

  /** Its own writes are waited for no longer than others', and have everything put back again if they end later. */
  async #flushAll(client: pg.PoolClient, server: string): Promise<void> {
    this.#isFlushing = true;
    const written = withinMs(this.#attend(), FLUSHED_MS);
    await Promise.all([this.#tables.flushAll(client, server, FLUSHED_MS), written]).finally(() => {
      this.#isFlushing = false;
    });
    this.#waitAnew();
  }

  /** Also while a recovery that was wanted before the loss waits for its turn. */
  get #mayBeLost(): boolean {
    return this.#isLost || this.#isWanted;
  }

  #setLost(isLost: boolean): void {
    if (!isLost) this.#counts.insist();
    else if (!this.#isLost) this.#waitAnew();
    this.#isLost = isLost;
  }

  #waitAnew(): void {
    this.#impatience.refresh();
    this.#waited = 0;
  }

  /** Called whenever PostgreSQL has not been reached for PATIENCE_MS. */
  async #goOn(): Promise<void> {
    this.#waited += 1;
    if (!this.#mayBeLost || this.#isFlushing || this.#waited < this.#patience) return;
    const attendances = this.#attendances;
    // What is counted from now on would be missing in a recovery for which this replica has written already.
    const groups = await this.#counts.overtake(randomUUID()).catch(() => []);
    if (groups.length === 0) return;
    this.#patience = Math.min(2 * this.#patience, MOST_PATIENCE);
    if (!this.#mayBeLost || attendances !== this.#attendances) return;
    this.#isLost = true;
    this.#counts.goOn(groups);
    this.#observer.countsGoOn();
  }

  async #attendAgain(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      // What fails here fails when the journal is written as well, which reports it.
      await this.#attend().catch(() => undefined);
      if (this.#standing.isInDoubt) this.want();
      await this.#pause(ATTEND_MS);
    }
  }

  async #attend(): Promise<void> {
    const recovery = await this.#tables.attend(this.#replica, this.#flushed ?? 0);
    this.#attendances += 1;
    this.#waitAnew();
    // Whatever is counted without looking for losses is written before a recovery reads.
    this.#counts.insist();
    const { asked, reading } = recovery;
    if (this.#flushed === undefined) {
      // What is counted after these answers is counted by a replica that the tables know.
      await this.#counts.answered();
      this.#standing.started(recovery);
      this.#flushed = reading ?? 0;
    }
    const flushed = this.#flushed;
    if (asked <= flushed) return;
    // What was charged before the loss may still be on its way.
    await this.#counts.answered();
    this.#standing.writing(recovery);
    if (!(await this.#journal.flush())) return;
    this.#flushed = asked;
    this.#standing.written({ ...(await this.#tables.attend(this.#replica, asked)), asked }, flushed);
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    await setTimeout(ms, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
