import { installDebianPackage } from '../fixtures/debian.ts';
import { findPostgres } from '../platform/fixtures/postgres.ts';

/** Sees to it that the platform's tests can run on a PostgreSQL; without one they run on the embedded one alone. */
export default function setup(): void {
  if (findPostgres() !== undefined) return;
  const hint =
    'PostgreSQL is not installed (`initdb` and `postgres`): the tests of the platform run on PGlite alone.';
  try {
    installDebianPackage('postgresql', hint);
  } catch {
    console.warn(hint);
  }
}
