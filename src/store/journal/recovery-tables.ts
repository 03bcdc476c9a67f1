import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { PresentCounts } from './journaled-counts.ts';
import {
  ASK,
  ATTEND,
  beginWithLock,
  COUNTS_OF,
  LOCKS,
  PRESENT,
  READ_IN_ORDER,
  READING,
  UNFLUSHED,
} from './statements.ts';

/** Buckets whose counts are read at once. */
const BUCKETS_PER_PAGE = 5_000;
/** Reading the sums of millions of owners takes longer than any other query. */
const READ_TIMEOUT_MS = 120_000;
const UNFLUSHED_POLL_MS = 50;

/** The last recovery, as the tables have it. */
export interface AskedRecovery {
  /** Its number. */
  readonly asked: number;
  /** The number of the last one that began to read: what was written after that may be missing in what it put back. */
  readonly reading: number | null;
  /** The server that had lost something. */
  readonly server: string | null;
  /** When it asked, in seconds before now. */
  readonly askedSeconds: number | null;
}

/** A row of PRESENT. */
interface Page {
  readonly keys: string | null;
  readonly texts: string;
  readonly last: string;
}

const NO_PAGE: Page = { keys: null, texts: '', last: '' };

const NEVER_ASKED: AskedRecovery = { asked: 0, reading: null, server: null, askedSeconds: null };

/** What recoveries need of the journal's tables. */
export class RecoveryTables {
  readonly #pool: pg.Pool;
  readonly #fleet: string;
  readonly #migrate: () => Promise<void>;
  readonly #silentMs: number;

  /** @param silentMs after which PostgreSQL gives up a replica that does not say anything, and lets another one recover */
  constructor(pool: pg.Pool, fleet: string, migrate: () => Promise<void>, silentMs: number) {
    this.#pool = pool;
    this.#fleet = fleet;
    this.#migrate = migrate;
    this.#silentMs = silentMs;
  }

  /**
   * Says that this replica lives, and has written all that it counted before it was last asked.
   */
  async attend(replica: string, flushed: number): Promise<AskedRecovery> {
    await this.#migrate();
    const values = [this.#fleet, replica, flushed];
    const { rows } = await this.#pool.query<{ recovery: AskedRecovery | null }>(ATTEND, values);
    return rows[0]?.recovery ?? NEVER_ASKED;
  }

  /**
   * Runs `work` while no other replica of this fleet does. The others wait for their turn.
   *
   * @param work calls `speak` often while it sends PostgreSQL nothing, because PostgreSQL ends a transaction that is silent for too long
   */
  async alone(work: (client: pg.PoolClient, speak: () => void) => Promise<void>): Promise<void> {
    await this.#migrate();
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    try {
      await client.query(beginWithLock(this.#silentMs));
      await client.query(`set local statement_timeout = ${READ_TIMEOUT_MS}`);
      const lock = 'select pg_advisory_xact_lock($1, hashtext($2))';
      await ask(client, { text: lock, values: [LOCKS.recover, this.#fleet] });
      await work(client, this.#speakerOf(client));
      await client.query('commit');
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      // A connection whose transaction failed is closed, which rolls it back.
      client.release(failure);
    }
  }

  /** Sends a query without effect now and then, so that PostgreSQL does not end the transaction of a replica that is busy elsewhere. */
  #speakerOf(client: pg.PoolClient): () => void {
    let spokeMs = performance.now();
    return () => {
      const nowMs = performance.now();
      if (nowMs - spokeMs < this.#silentMs / 4) return;
      spokeMs = nowMs;
      // What fails here fails in the next query as well.
      ask(client, { text: 'select 1' }).catch(() => undefined);
    };
  }

  /**
   * Asks every replica that lives to write what it has counted, and waits for them, but no longer than so many ms.
   *
   * @param client with the lock, which is not silent meanwhile
   */
  async flushAll(client: pg.PoolClient, server: string, mostMs: number): Promise<void> {
    const { rows } = await this.#pool.query<{ asked: string }>(ASK, [this.#fleet, server]);
    const values = [this.#fleet, rows[0]?.asked];
    const untilMs = performance.now() + mostMs;
    for (;;) {
      const missing = await client.query(UNFLUSHED, values);
      if (missing.rows.length === 0 || performance.now() > untilMs) break;
      await setTimeout(UNFLUSHED_POLL_MS);
    }
    await this.#pool.query(READING, values);
  }

  /** The counts of all present windows and periods. */
  async *present(client: pg.PoolClient): AsyncGenerator<PresentCounts> {
    await client.query(READ_IN_ORDER);
    for (let page = this.#page(client, ''); ; ) {
      const read = await page;
      const counts = countsIn(read);
      if (counts === undefined) return;
      // PostgreSQL reads the next ones while these are put back.
      page = this.#page(client, read.last);
      page.catch(() => undefined);
      yield counts;
    }
  }

  /** The counts of these buckets. */
  async countsOf(keys: readonly string[]): Promise<PresentCounts> {
    const values = [this.#fleet, keys];
    const { rows } = await this.#pool.query<Page>(COUNTS_OF, values);
    return countsIn(rows[0] ?? NO_PAGE) ?? { keys: [], texts: [] };
  }

  async #page(client: pg.PoolClient, after: string): Promise<Page> {
    const values = [this.#fleet, after, BUCKETS_PER_PAGE];
    const { rows } = await ask<Page>(client, { text: PRESENT, values });
    return rows[0] ?? NO_PAGE;
  }
}

function countsIn({ keys, texts }: Page): PresentCounts | undefined {
  return keys === null ? undefined : { keys: keys.split(' '), texts: texts.split(',') };
}

/** May take longer than other queries. */
function ask<Row extends pg.QueryResultRow>(
  client: pg.PoolClient,
  query: pg.QueryConfig,
): Promise<pg.QueryResult<Row>> {
  const patient = { ...query, query_timeout: READ_TIMEOUT_MS };
  return client.query<Row>(patient);
}
