import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One folder for what all tests of a run write: it goes with them, and they need not clean up after themselves. */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tests-'));
  // PostgreSQL does not run as root, and its data is in here.
  chmodSync(folder, 0o711);
  process.env.TMPDIR = folder;
  // From Node 22 on: what starts in a run does not compile what another process has compiled.
  process.env.NODE_COMPILE_CACHE ??= join(folder, 'compiled');
  return () => rmSync(folder, { recursive: true, force: true });
}
