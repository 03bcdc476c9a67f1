import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** As they were released. */
const COMMITS = {
  '0.2.0': 'c42fc98be77b6d82790696a10ed94cf401d9925f',
  '0.3.0': 'f81116bf982e26151e0fc4fef473d0f3dcb2710d',
};
const VERSION = process.env.WEIR_TEST_EARLIER === '0.2.0' ? '0.2.0' : '0.3.0';
const COMMIT = COMMITS[VERSION];

export const EARLIER = {
  version: VERSION,
  image: process.env.WEIR_TEST_EARLIER_IMAGE ?? `registry.example.com/weir:${VERSION}`,
} as const;

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
