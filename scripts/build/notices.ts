import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/**
 * The licences of the packages that modules belong to, as a text to publish with them.
 * @throws Error if a package names no licence
 */
export function noticesOf(modules: Iterable<string>): string {
  const folders = new Set(Array.from(modules, packageFolderOf).filter((folder) => folder !== undefined));
  const notices = [...folders].map(noticeOf).sort();
  return `This program contains the following packages.\n\n${[...new Set(notices)].join('\n\n')}`;
}

/** The folder of the package that a file belongs to; undefined outside of node_modules. */
function packageFolderOf(file: string): string | undefined {
  return /^\/.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
}

function noticeOf(folder: string): string {
  const { name, version, license } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  ) as Manifest;
  if (license === undefined) throw new Error(`${name} names no licence`);
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file));
  const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim());
  return [`${name} ${version}: ${license}`, ...texts].join('\n\n');
}
