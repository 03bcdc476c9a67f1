import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import { lockDirectory } from './directory-lock.ts';
import { DatabaseUnavailable } from './unavailable.ts';

/** The part of a PostgreSQL client that the platform uses. */
export interface ScriptPool extends PostgresPool {
  /** A client whose queries are given up after `limitMs`. PGlite, which is in this process, always answers. */
  connect(limitMs?: number): Promise<PostgresPoolClient>;
  /** Runs several statements without parameters, and returns the rows of the last one. */
  runScript(text: string): Promise<{ rows: Record<string, unknown>[] }>;
  /** Runs `work` while holding a lock, so that only one process at a time does so on this database. */
  exclusively<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * PostgreSQL inside this process, behind the interface of pg's Pool, so that the same dialect, queries and
 * transactions run on it. There is one connection, and callers get it in the order in which they asked. A second process
 * on the same directory would overwrite what the first one has committed, so the directory is locked until `end`.
 */
export async function openPglitePool(directory: string | undefined): Promise<ScriptPool> {
  const lock = directory === undefined ? undefined : await lockDirectory(directory);
  const pglite = await openPglite(directory).catch(async (error) => {
    await lock?.release();
    throw directory === undefined ? error : unusable(directory, error);
  });
  let lastInLine: Promise<void> = Promise.resolve();

  const takeTurn = async (): Promise<() => void> => {
    const before = lastInLine;
    let release: () => void = () => undefined;
    lastInLine = new Promise((resolve) => {
      release = resolve;
    });
    await before;
    return release;
  };
  return {
    async connect() {
      const release = await takeTurn();
      const query = async (text: string, parameters: readonly unknown[]) => {
        const { rows, affectedRows = 0 } = await pglite.query(text, [...parameters]);
        return { command: commandOf(text), rowCount: affectedRows, rows };
      };
      return { query, release } as PostgresPoolClient;
    },
    async runScript(text) {
      const release = await takeTurn();
      try {
        return { rows: (await pglite.exec(text)).at(-1)?.rows ?? [] };
      } catch (error) {
        await pglite.exec('rollback');
        throw error;
      } finally {
        release();
      }
    },
    // Only this process has the memory, or the lock of the directory.
    exclusively: (work) => work(),
    async end() {
      await takeTurn();
      await pglite.close();
      await lock?.release();
    },
  };
}

/**
 * Both packages are loaded only where they are used: one is a whole PostgreSQL, the other its first data directory,
 * which takes a quarter of the time and half of the memory of creating one.
 */
async function openPglite(directory: string | undefined): Promise<PGlite> {
  const { PGlite } = await import('@electric-sql/pglite');
  if (directory !== undefined && existsSync(join(directory, 'PG_VERSION'))) return PGlite.create(directory);
  const { dataDir } = await import('@electric-sql/pglite-prepopulatedfs');
  const loadDataDir = await dataDir();
  return PGlite.create({ loadDataDir, ...(directory !== undefined && { dataDir: directory }) });
}

/** PGlite does not report why it cannot open a directory. An error of its file system is not an `Error`, and has only a number. */
function unusable(directory: string, error: unknown): DatabaseUnavailable {
  const detail = error instanceof Error ? error.message : JSON.stringify(error);
  const message = `The directory ${directory} cannot be used: its disk may be full, or its database damaged (${detail}).`;
  return new DatabaseUnavailable(message, { cause: error });
}

const COMMANDS = ['INSERT', 'UPDATE', 'DELETE', 'MERGE'] as const;

function commandOf(text: string): (typeof COMMANDS)[number] | 'SELECT' {
  const word = text.trimStart().slice(0, 6).toUpperCase();
  return COMMANDS.find((command) => word.startsWith(command)) ?? 'SELECT';
}
