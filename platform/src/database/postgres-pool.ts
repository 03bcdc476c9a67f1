import type { PostgresPoolClient, PostgresQueryResult } from 'kysely';
import pg from 'pg';
import { waitBriefly } from '../program/grace.ts';
import type { ScriptPool } from './pglite-pool.ts';

/** No statement takes longer on a healthy server, except the long ones. Half of it is enough for a connection, or to wait for one. */
const TIMEOUT_MS = 30_000;
/** For statements that read or change whole tables, such as migrations, and for waiting until another process has run them. */
export const LONG_TIMEOUT_MS = 3600_000;
/** A connection without traffic is probed after this time, so a long statement also ends if the server has gone. */
const KEEP_ALIVE_MS = 10_000;
/** How often PostgreSQL looks, during a statement, whether its client is still there. */
const CHECK_MS = 5_000;

/**
 * A role or a database may have other settings. The client reads no times but ISO's, and with another isolation parallel writes fail
 * instead of waiting for each other.
 */
const SESSION = "set datestyle to 'ISO'; set default_transaction_isolation to 'read committed'";

/** @param timeoutMs how long a statement may take, except the long ones */
export function openPostgresPool(url: string, timeoutMs = TIMEOUT_MS): ScriptPool {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    application_name: 'weir-platform',
    connectionTimeoutMillis: timeoutMs / 2,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    onConnect: async (client) => {
      await client.query(limited(SESSION, [], timeoutMs));
      await endWithClient(client, timeoutMs);
    },
  });
  // If a connection dies while it is idle or between two queries, the next query fails and the connection is replaced.
  // Without a listener, the error event would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const connect = async (limitMs = timeoutMs) => givingUp(await pool.connect(), limitMs);
  return {
    connect,
    end: () => waitBriefly(pool.end()),
    exclusively: (work) => withLock(pool, work),
    async runScript(text) {
      const client = await connect(LONG_TIMEOUT_MS);
      try {
        const answer = (await client.query(text, [])) as unknown;
        const last = Array.isArray(answer) ? answer.at(-1) : answer;
        return { rows: last.rows };
      } catch (error) {
        await client.query('rollback', []).catch(() => undefined);
        throw error;
      } finally {
        client.release();
      }
    },
  };
}

/** A query that is given up after the time. The types of pg do not know this member. */
function limited(text: string, values: readonly unknown[], limitMs: number): pg.QueryConfig {
  const query = { text, values: [...values], query_timeout: limitMs };
  return query;
}

/**
 * Lets PostgreSQL end a statement whose connection was closed because it took too long. Otherwise it would go on waiting for its lock,
 * and each further try would add a connection.
 */
async function endWithClient(client: pg.ClientBase, limitMs: number): Promise<void> {
  try {
    await client.query(limited(`set client_connection_check_interval to ${CHECK_MS}`, [], limitMs));
  } catch (error) {
    // A server on Windows cannot do so.
    if (!(error instanceof pg.DatabaseError)) throw error;
  }
}

/**
 * A client whose queries are given up after `limitMs`. The connection stays busy with a query that was given up, and so Kysely's
 * rollback would wait behind it, and then other requests. They fail at once instead, and the release closes the connection, as after
 * every failure that PostgreSQL did not report.
 */
function givingUp(client: pg.PoolClient, limitMs: number): PostgresPoolClient {
  let failure: Error | undefined;
  const query = async <Row>(text: string, values: readonly unknown[]): Promise<PostgresQueryResult<Row>> => {
    if (failure) throw failure;
    try {
      const result: unknown = await client.query(limited(text, values, limitMs));
      return result as PostgresQueryResult<Row>;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) failure = error as Error;
      throw error;
    }
  };
  return { query, release: () => client.release(failure) } as PostgresPoolClient;
}

/** Lock number: "weir" in ASCII. No other program in this database may use it. */
const LOCK = 0x77656972;

/** The connection holds the lock, so the lock is released if this process dies. */
async function withLock<Result>(pool: pg.Pool, work: () => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query(limited('select pg_advisory_lock($1)', [LOCK], LONG_TIMEOUT_MS));
    const result = await work();
    await client.query(limited('select pg_advisory_unlock($1)', [LOCK], LONG_TIMEOUT_MS));
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}
