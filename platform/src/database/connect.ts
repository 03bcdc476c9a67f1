import { readdirSync, readFileSync } from 'node:fs';
import { CompiledQuery, Kysely, PostgresDialect, type PostgresPool } from 'kysely';
import { openPglitePool, type ScriptPool } from './pglite-pool.ts';
import { LONG_TIMEOUT_MS, openPostgresPool } from './postgres-pool.ts';
import type { Database, Tables } from './schema.ts';
import { openingError } from './unavailable.ts';

/** Where the platform stores its data. The embedded kinds run PostgreSQL in this process. */
export type DatabaseSettings =
  | { readonly kind: 'memory' }
  | { readonly kind: 'directory'; readonly path: string }
  | {
      readonly kind: 'postgres';
      readonly url: string;
      /** How long a statement may take. Default: 30 s. */
      readonly timeoutMs?: number;
    };

/** Runs SQL text from pg-boss: one statement with values, or a script without values. */
export interface SqlExecutor {
  executeSql(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface OpenDatabase {
  readonly db: Database;
  /** The same database, for statements that may take an hour. */
  readonly slowDb: Database;
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
      ? openPostgresPool(settings.url, settings.timeoutMs)
      : await openPglitePool(settings.kind === 'directory' ? settings.path : undefined);
  const db = toDatabase(pool);
  try {
    await pool.exclusively(() => migrate(pool));
  } catch (error) {
    await pool.end();
    throw error;
  }
  return {
    db,
    slowDb: toDatabase({ connect: () => pool.connect(LONG_TIMEOUT_MS), end: () => pool.end() }),
    executor: {
      executeSql: (text, values) => (values?.length ? queryOn(db, text, values) : pool.runScript(text)),
    },
    exclusively: (work) => pool.exclusively(work),
    close: () => pool.end(),
  };
}

function toDatabase(pool: PostgresPool): Database {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
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
