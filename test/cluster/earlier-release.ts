import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The commits of released versions, the last one at the end. */
const RELEASES: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../.ci/releases.json'), 'utf8'),
);
const VERSION = process.env.WEIR_TEST_EARLIER ?? Object.keys(RELEASES).at(-1) ?? '';
const COMMIT = commitOf(VERSION);

export const EARLIER = {
  version: VERSION,
  image: process.env.WEIR_TEST_EARLIER_IMAGE ?? `registry.example.com/weir:${VERSION}`,
} as const;

function commitOf(version: string): string {
  const commit = RELEASES[version];
  if (commit !== undefined) return commit;
  throw new Error(`WEIR_TEST_EARLIER=${version} is not one of ${Object.keys(RELEASES).join(', ')}`);
}

/** Whether this clone has the release in its history; prints a sentence if not. */
export function isInHistory(): boolean {
  const { status } = spawnSync('git', ['cat-file', '-e', `${COMMIT}^{commit}`], { stdio: 'ignore' });
  if (status === 0) return true;
  console.log(
    `UPGRADES FROM ${EARLIER.version} ARE NOT TESTED HERE, because this clone has no history: git fetch --unshallow`,
  );
  return false;
}

/** Writes the README and the chart of the release to a new folder, which the caller removes. */
export function checkOut(): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-earlier-'));
  const archive = join(folder, 'release.tar');
  execFileSync('git', ['archive', '--output', archive, COMMIT, 'README.md', 'helm/weir']);
  execFileSync('tar', ['-xf', archive, '-C', folder]);
  return folder;
}
