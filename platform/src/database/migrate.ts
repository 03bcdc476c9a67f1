import { readdirSync, readFileSync } from 'node:fs';
import type { ScriptPool } from './pglite-pool.ts';

const DIRECTORY = new URL('./migrations/', import.meta.url);

/**
 * Runs the SQL files of `migrations/` that this database has not seen, in the order of their names, each in one
 * transaction. Not to be run twice at once.
 */
export async function migrate(pool: ScriptPool): Promise<void> {
  await pool.runScript(
    'create table if not exists weir_migrations (name text primary key, applied_at timestamptz not null default now())',
  );
  const { rows } = await pool.runScript('select name from weir_migrations');
  const seen = new Set(rows.map((row) => row.name));
  for (const name of readdirSync(DIRECTORY).sort()) {
    if (seen.has(name)) continue;
    const body = readFileSync(new URL(name, DIRECTORY), 'utf8');
    await pool.runScript(`begin; ${body}; insert into weir_migrations (name) values ('${name}'); commit`);
  }
}
