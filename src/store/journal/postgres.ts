import pg from 'pg';
import type { RecordedSum } from '../store.ts';
import { columnsOf, storedText } from './columns.ts';
import { RecoveryTables } from './recovery-tables.ts';
import {
  beginWithLock,
  CREATE_VERSION,
  DROPS,
  EXPORT,
  LOCKS,
  MIGRATIONS,
  PAST,
  WRITE,
} from './statements.ts';

/** Points, requests and refusals of one day, by one operation and one limit. */
export interface DaySum {
  /** `2026-11-25`, in the time zone that was asked for. */
  readonly day: string;
  readonly operation: string;
  readonly limit: string;
  readonly points: number;
  readonly requests: number;
  readonly refused: number;
}

/** The same, with whose sum it is. */
export interface OwnerDaySum extends DaySum {
  readonly scope: string;
  readonly id: string;
}

/** A past time, and the time zone of its days. */
export interface PastTime {
  readonly from: Date;
  readonly to: Date;
  /** An IANA name. */
  readonly timeZone: string;
}

/** No query of the journal takes longer on a healthy server, except that an export reads a page of owners. */
const TIMEOUT_MS = 10_000;
/**
 * How long a transaction with a lock may be silent. If its replica is gone without a word, the others wait for it until then. A replica that
 * stood still for as long loses its lock, and begins its recovery anew.
 */
const SILENT_MS = 3_000;
/** Owners that an export reads at once. */
const OWNERS_PER_PAGE = 500;

/** Rows that one statement drops, so that it takes no longer than another query. */
const ROWS_DROPPED = 20_000;
/** How often each of these statements runs in one go, at most: ten million rows. */
const MOST_DROPS = 500;

/**
 * The journal's tables in PostgreSQL. All replicas with one prefix of keys share their rows. No statement has a name, because a pooler may
 * give each transaction another connection, which does not know it.
 */
export class PostgresJournal {
  readonly #pool: pg.Pool;
  readonly #fleet: string;
  readonly recovery: RecoveryTables;
  readonly #silentMs: number;
  #isMigrated = false;

  /** @param silentMs how long a transaction with a lock may be silent, before PostgreSQL ends it */
  constructor(url: string, fleet: string, silentMs = SILENT_MS) {
    this.#fleet = fleet;
    this.#silentMs = silentMs;
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: 'weir',
      // One writes, one may wait for a recovery of another replica, the others read.
      max: 4,
      connectionTimeoutMillis: TIMEOUT_MS / 2,
      query_timeout: TIMEOUT_MS,
      // A pooler such as PgBouncer refuses it as a parameter of a connection.
      onConnect: (client) => client.query(`set statement_timeout = ${TIMEOUT_MS}`),
      keepAlive: true,
      // A gateway that waits for nothing else may end.
      allowExitOnIdle: true,
    });
    // If a connection dies while it is idle or between two queries, the next query fails and the connection is replaced.
    // Without a listener, the error event would end the process.
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => client.on('error', () => undefined));
    this.recovery = new RecoveryTables(this.#pool, fleet, () => this.#migrate(), silentMs);
  }

  /**
   * Adds the sums, unless this replica has written a batch of this sequence or a later one.
   *
   * @throws Error of PostgreSQL or of the connection; then the batch may have been written
   */
  async write(replica: string, sequence: number, sums: readonly RecordedSum[]): Promise<void> {
    await this.#migrate();
    await this.#pool.query(WRITE, [this.#fleet, replica, sequence, ...columnsOf(sums)]);
  }

  /**
   * Drops what nobody needs. If one kind of rows cannot be dropped, the others are.
   *
   * @param goesOn called after each statement; returns whether to go on
   * @throws the first error of PostgreSQL or of the connection
   */
  async tidy(goesOn: () => Promise<boolean> = async () => true): Promise<void> {
    await this.#migrate();
    const failures: unknown[] = [];
    for (const statement of DROPS) {
      const isStopped = await this.#drop(statement, goesOn).catch((error) => {
        failures.push(error);
        return false;
      });
      if (isStopped || !(await goesOn())) break;
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Returns true if `goesOn` has said no. */
  async #drop(statement: string, goesOn: () => Promise<boolean>): Promise<boolean> {
    for (let times = 0; times < MOST_DROPS; times++) {
      const { rowCount } = await this.#pool.query(statement, [this.#fleet, ROWS_DROPPED]);
      if (rowCount !== ROWS_DROPPED) return false;
      if (!(await goesOn())) return true;
    }
    return false;
  }

  /** What an owner used, by day, operation and limit. */
  async past(scope: string, owner: string, { from, to, timeZone }: PastTime): Promise<readonly DaySum[]> {
    await this.#migrate();
    const values = [this.#fleet, scope, storedText(owner), timeZone, from, to];
    const { rows } = await this.#pool.query<DaySum>(PAST, values);
    return rows;
  }

  /** What all owners used, in the order of their scopes and ids. */
  async *exported({ from, to, timeZone }: PastTime): AsyncGenerator<readonly OwnerDaySum[]> {
    await this.#migrate();
    let after = { scope: '', id: '' };
    for (;;) {
      const values = [this.#fleet, timeZone, from, to, after.scope, after.id, OWNERS_PER_PAGE];
      const { rows } = await this.#pool.query<OwnerDaySum>(EXPORT, values);
      const last = rows.at(-1);
      if (last === undefined) return;
      yield rows;
      after = last;
    }
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  /**
   * Writes an empty batch, and rolls it back.
   *
   * @throws Error of PostgreSQL or of the connection
   */
  async try(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await client.query(beginWithLock(this.#silentMs));
      await migrate(client);
      await client.query(WRITE, [this.#fleet, 'trial', 1, ...columnsOf([])]);
    } finally {
      // Closes the connection, which rolls back.
      client.release(true);
    }
  }

  /** Brings the tables up to date, once. */
  async #migrate(): Promise<void> {
    if (this.#isMigrated) return;
    await this.#inTransaction(migrate);
    this.#isMigrated = true;
  }

  async #inTransaction<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    let failure: Error | undefined;
    try {
      await client.query(beginWithLock(this.#silentMs));
      const result = await work(client);
      await client.query('commit');
      return result;
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      // A connection whose transaction failed is closed, which rolls it back.
      client.release(failure);
    }
  }
}

async function migrate(client: pg.PoolClient): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1)', [LOCKS.migrate]);
  await client.query(CREATE_VERSION);
  const { rows } = await client.query<{ version: number }>('select version from weir_journal_version');
  const version = rows[0]?.version ?? 0;
  // A newer release may have added more.
  if (version >= MIGRATIONS.length) return;
  for (const statements of MIGRATIONS.slice(version)) await client.query(statements);
  await client.query('delete from weir_journal_version');
  await client.query('insert into weir_journal_version (version) values ($1)', [MIGRATIONS.length]);
}
