import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { migrate } from './migrate.ts';
import { openPglitePool, type ScriptPool } from './pglite-pool.ts';
import type { Database, Tables } from './schema.ts';

/** Where the platform keeps its data. The embedded kinds are PostgreSQL inside this process. */
export type DatabaseSettings =
  | { readonly kind: 'memory' }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string };

/** Runs SQL text as pg-boss sends it: with values, or as a script without. */
export interface SqlExecutor {
  executeSql(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

export interface OpenDatabase {
  readonly db: Database;
  readonly executor: SqlExecutor;
  close(): Promise<void>;
}

/** Opens the database and brings its tables up to date. */
export async function openDatabase(settings: DatabaseSettings): Promise<OpenDatabase> {
  const pool =
    settings.kind === 'postgres'
      ? openPostgresPool(settings.url)
      : await openPglitePool(settings.kind === 'directory' ? settings.path : undefined);
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  try {
    await migrate(pool);
  } catch (error) {
    await pool.end();
    throw error;
  }
  return {
    db,
    executor: {
      executeSql: (text, values) => (values?.length ? queryOn(db, text, values) : pool.runScript(text)),
    },
    close: () => pool.end(),
  };
}

/** Lets pg-boss write with the caller's transaction. */
export function executorOn(db: Database): SqlExecutor {
  return { executeSql: (text, values = []) => queryOn(db, text, values) };
}

async function queryOn(db: Database, text: string, values: readonly unknown[]) {
  const { rows } = await db.executeQuery(CompiledQuery.raw(text, [...values]));
  return { rows: rows as Record<string, unknown>[] };
}

function openPostgresPool(url: string): ScriptPool {
  const pool = new pg.Pool({ connectionString: url, max: 10, application_name: 'weir-platform' });
  // A connection that dies while idle is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => undefined);
  return {
    connect: () => pool.connect(),
    end: () => pool.end(),
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
