import type { TestProject } from 'vitest/node';
import { installDebianPackage } from '../../../test/fixtures/debian.ts';
import { findPostgres, startPostgres } from '../fixtures/postgres.ts';

const HINT =
  'PostgreSQL is not installed (`initdb` and `postgres`): the tests of the platform run on PGlite alone.';

/** One PostgreSQL for the whole run; tests keep apart by database. Without one they run on the embedded one alone. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const binaries = findPostgres() ?? install();
  if (binaries === undefined) return undefined;
  const server = await startPostgres(binaries);
  project.provide('postgresUrl', server.url);
  return () => server.stop();
}

function install(): string | undefined {
  try {
    installDebianPackage('postgresql', HINT);
  } catch {
    console.warn(HINT);
  }
  return findPostgres();
}
