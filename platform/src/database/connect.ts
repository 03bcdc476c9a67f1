import { readdirSync, readFileSync } from 'node:fs';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { openPglitePool, type ScriptPool } from './pglite-pool.ts';
import type { Database, Tables } from './schema.ts';
import { openingError } from './unavailable.ts';

/** Where the platform stores its data. The embedded kinds run PostgreSQL in this process. */
export type DatabaseSettings =
  | { readonly kind: 'memory' }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string };

/** Runs SQL text from pg-boss: one statement with values, or a script without values. */
export interface SqlExecutor {
  executeSql(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface OpenDatabase {
  readonly db: Database;
  readonly executor: SqlExecutor;
  /** Runs `work` while holding a lock, so that only one process at a time does so on this database. */
  readonly exclusively: ScriptPool['exclusively'];
  close(): Promise<void>;
}

/**
 * Opens the database and brings its tables up to date.
 *
 * @throws DatabaseUnavailable if it does not answer, refuses the user, or its directory cannot be used
 */
export async function openDatabase(settings: DatabaseSettings): Promise<OpenDatabase> {
  try {
    return await open(settings);
  } catch (error) {
    throw openingError(error);
  }
}

async function open(settings: DatabaseSettings): Promise<OpenDatabase> {
  const pool =
    settings.kind === 'postgres'
      ? openPostgresPool(settings.url)
      : await openPglitePool(settings.kind === 'directory' ? settings.path : undefined);
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  try {
    await pool.exclusively(() => migrate(pool));
  } catch (error) {
    await pool.end();
    throw error;
  }
  return {
    db,
    executor: {
      executeSql: (text, values) => (values?.length ? queryOn(db, text, values) : pool.runScript(text)),
    },
    exclusively: (work) => pool.exclusively(work),
    close: () => pool.end(),
  };
}

const MIGRATIONS = new URL('./migrations/', import.meta.url);

/**
 * Runs the SQL files of `migrations/` that this database has not seen, in the order of their names, each in one
 * transaction. Not to be run twice at once.
 */
async function migrate(pool: ScriptPool): Promise<void> {
  await pool.runScript(
    'create table if not exists weir_migrations (name text primary key, applied_at timestamptz not null default now())',
  );
  const { rows } = await pool.runScript('select name from weir_migrations');
  const seen = new Set(rows.map((row) => row.name));
  for (const name of readdirSync(MIGRATIONS).sort()) {
    if (seen.has(name)) continue;
    const body = readFileSync(new URL(name, MIGRATIONS), 'utf8');
    await pool.runScript(`begin; ${body}; insert into weir_migrations (name) values ('${name}'); commit`);
  }
}

/** Lets pg-boss write in the caller's transaction. */
export function executorOn(db: Database): SqlExecutor {
  return { executeSql: (text, values = []) => queryOn(db, text, values) };
}

async function queryOn(db: Database, text: string, values: readonly unknown[]) {
  const { rows } = await db.executeQuery(CompiledQuery.raw(text, [...values]));
  return { rows: rows as Record<string, unknown>[] };
}

function openPostgresPool(url: string): ScriptPool {
  const pool = new pg.Pool({ connectionString: url, max: 10, application_name: 'weir-platform' });
  // If a connection dies while it is idle or between two queries, the next query fails and the connection is replaced.
  // Without a listener, the error event would end the process.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return {
    connect: () => pool.connect(),
    end: () => pool.end(),
    exclusively: (work) => withLock(pool, work),
    async runScript(text) {
      const client = await pool.connect();
      try {
        const answer = (await client.query(text)) as unknown;
        const last = Array.isArray(answer) ? answer.at(-1) : answer;
        return { rows: last.rows };
      } catch (error) {
        await client.query('rollback').catch(() => undefined);
        throw error;
      } finally {
        client.release();
      }
    },
  };
}

/** Lock number: "weir" in ASCII. No other program in this database may use it. */
const LOCK = 0x77656972;

/** The connection holds the lock, so the lock is released if this process dies. */
async function withLock<Result>(pool: pg.Pool, work: () => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK]);
    const result = await work();
    await client.query('select pg_advisory_unlock($1)', [LOCK]);
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}
