import { readdirSync, readFileSync } from 'node:fs';
import type { ScriptPool } from './pglite-pool.ts';

const DIRECTORY = new URL('./migrations/', import.meta.url);

/** Any number that no other program in this database locks on: "weir" in ASCII. */
const LOCK = 0x77656972;

/**
 * Runs the SQL files of `migrations/` that this database has not seen, in the order of their names, each in one
 * transaction. Several processes that start at once wait for each other.
 */
export async function migrate(pool: ScriptPool): Promise<void> {
  await pool.runScript(
    `begin; select pg_advisory_xact_lock(${LOCK});
     create table if not exists weir_migrations (name text primary key, applied_at timestamptz not null default now());
     commit`,
  );
  for (const name of readdirSync(DIRECTORY).sort()) {
    const body = readFileSync(new URL(name, DIRECTORY), 'utf8');
    const seen = await pool.runScript(`select 1 from weir_migrations where name = '${name}'`);
    if (seen.rows.length === 0) await applyOnce(pool, name, body);
  }
}

async function applyOnce(pool: ScriptPool, name: string, body: string): Promise<void> {
  const insert = `insert into weir_migrations (name) values ('${name}')`;
  try {
    await pool.runScript(`begin; select pg_advisory_xact_lock(${LOCK}); ${insert}; ${body}; commit`);
  } catch (error) {
    const applied = await pool.runScript(`select 1 from weir_migrations where name = '${name}'`);
    if (applied.rows.length === 0) throw error;
  }
}
