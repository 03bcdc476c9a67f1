import type { TestProject } from 'vitest/node';
import { requirePackage } from '../../../test/fixtures/packages.ts';
import { startPostgres } from '../fixtures/postgres.ts';

/**
 * One PostgreSQL for the whole run. Each test uses its own database. Without PostgreSQL the tests run on PGlite alone, except in CI, where
 * the run ends.
 */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const binaries = findOrInstall();
  if (binaries === undefined) return undefined;
  const server = await startPostgres(binaries);
  project.provide('postgresUrl', server.url);
  return () => server.stop();
}

function findOrInstall(): string | undefined {
  try {
    return requirePackage('postgresql');
  } catch (error) {
    if (process.env.CI) throw error;
    console.warn(
      `Without PostgreSQL, the tests of the platform run on PGlite alone. ${(error as Error).message}`,
    );
    return undefined;
  }
}
