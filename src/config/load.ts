import { readFileSync } from 'node:fs';
import { type Identities, toIdentities } from './identities.ts';
import { identitiesSchema } from './identities-file.ts';
import { type Limits, toLimits } from './limits.ts';
import { limitsSchema } from './limits-file.ts';
import { ConfigError } from './problem.ts';
import type { Finding } from './reader/check.ts';
import type { Environment } from './reader/environment.ts';
import { type Parsed, parse, resolveFiles } from './reader/parse.ts';
import { type Settings, settingsSchema } from './settings.ts';

/** weir.yaml with the environment laid over it. Throws a ConfigError that carries every problem. */
export function loadSettings(path: string, env: Environment): Settings {
  const { value } = parse(settingsSchema, readText(path, 'name another with --config'), path, env);
  return resolveFiles(settingsSchema, value, path);
}

/** The limits file. Throws a ConfigError that carries every problem. */
export function loadLimits(path: string): Limits {
  const parsed = parse(limitsSchema, readText(path, 'the setting limits.file names it'), path);
  const { limits, findings } = toLimits(parsed.value);
  refuse(parsed, findings);
  return limits;
}

/** The identities file. Throws a ConfigError that carries every problem. */
export function loadIdentities(path: string): Identities {
  const parsed = parse(identitiesSchema, readText(path, 'the setting identity.file names it'), path);
  const { identities, findings } = toIdentities(parsed.value);
  refuse(parsed, findings);
  return identities;
}

function refuse(parsed: Parsed<unknown>, findings: readonly Finding[]): void {
  if (findings.length > 0) throw new ConfigError(findings.map(parsed.place));
}

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
