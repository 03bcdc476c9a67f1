import { type Identities, toIdentities } from './identities.ts';
import { identitiesSchema } from './identities-schema.ts';
import type { Limits } from './limits.ts';
import { LimitsFiles } from './limits-files.ts';
import { ConfigError } from './problem.ts';
import type { Finding } from './reader/check.ts';
import type { Environment } from './reader/environment.ts';
import { type Parsed, parse, resolveFiles } from './reader/parse.ts';
import { readText } from './reader/read-text.ts';
import { type Settings, settingsSchema } from './settings.ts';

/** weir.yaml with the environment laid over it. Throws a ConfigError that carries every problem. */
export function loadSettings(path: string, env: Environment): Settings {
  const { value } = parse(settingsSchema, readText(path, 'name another with --config'), path, env);
  return resolveFiles(settingsSchema, value, path);
}

/** The limits and the files that override them. Throws a ConfigError that carries every problem. */
export function loadLimits(file: string, overrides: readonly string[] = []): Limits {
  return new LimitsFiles(file, overrides).load();
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
