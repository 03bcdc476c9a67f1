import { readFileSync } from 'node:fs';
import { ConfigError } from '../problem.ts';

/** The text of a file, or a ConfigError that says in one sentence why there is none. */
export function readText(path: string, hint: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    throw new ConfigError([
      { source: path, path: '', message: reasons[code] ?? `cannot be read (${code})`, hint },
    ]);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'this process may not read it',
  EISDIR: 'is a folder, not a file',
};
