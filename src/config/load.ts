import type { JSONWebKeySet } from 'jose';
import { type Identities, parseIdentities } from './files/identities.ts';
import { parseKeyFile } from './files/key-file.ts';
import { LimitsFiles } from './files/limits/files.ts';
import { ConfigError, type Problem } from './problem.ts';
import type { Environment } from './reader/environment.ts';
import type { FileSource } from './reader/file-source.ts';
import { examine, resolveFiles } from './reader/parse.ts';
import { ParsedFile } from './reader/parsed-file.ts';
import { readText } from './reader/read-text.ts';
import { isMapping } from './reader/schema-node.ts';
import { identityFindings } from './settings/identity/findings.ts';
import { type Settings, settingsSchema } from './settings/settings.ts';

/** weir.yaml with the environment laid over it, as far as it is sound. */
export interface SettingsReading {
  /** The sections that nothing is wrong with; all of them where there are no problems. */
  readonly sound: Partial<Settings>;
  readonly problems: readonly Problem[];
}

/** Reads weir.yaml. Throws a ConfigError only where there is no such file, or it is no YAML. */
export function readSettings(path: string, env: Environment): SettingsReading {
  const text = readText(path, 'name another with --config');
  const { value, place, problems, unsound } = examine(settingsSchema, text, path, env);
  const sections = isMapping(value) ? Object.entries(value).filter(([name]) => !unsound.has(name)) : [];
  const sound: Partial<Settings> = resolveFiles(settingsSchema, Object.fromEntries(sections), path);
  const findings = sound.identity === undefined ? [] : identityFindings(sound.identity);
  if (findings.length === 0) return { sound, problems };
  const { identity: _, ...others } = sound;
  return { sound: others, problems: [...problems, ...findings.map(place)] };
}

/** As `readSettings`, for those who need all of it. Throws a ConfigError that carries every problem. */
export function loadSettings(path: string, env: Environment): Settings {
  const reading = readSettings(path, env);
  if (isWhole(reading)) return reading.sound;
  throw new ConfigError(reading.problems);
}

export function isWhole(reading: SettingsReading): reading is SettingsReading & { readonly sound: Settings } {
  return reading.problems.length === 0;
}

/** The files that the settings name, save those of the operations, to be read now and again while running. */
export interface ConfigurationFiles {
  readonly limits: LimitsFiles;
  /** Undefined where callers and Accounts are known from elsewhere. */
  readonly identities: ParsedFile<Identities> | undefined;
  /** The public keys of token issuers; undefined where they come from elsewhere. */
  readonly keys: ParsedFile<JSONWebKeySet> | undefined;
}

/** The files of the sections that are given. */
export function configurationFiles(
  { limits, identity }: Partial<Settings>,
  source: FileSource,
): Omit<ConfigurationFiles, 'limits'> & Partial<ConfigurationFiles> {
  return {
    ...(limits && { limits: new LimitsFiles(limits.file, limits.overrides, source) }),
    identities: identity && identitiesFile(identity, source),
    keys: identity && keyFile(identity),
  };
}

function identitiesFile(
  identity: Settings['identity'],
  source: FileSource,
): ParsedFile<Identities> | undefined {
  const open = (file: string, setting: string) =>
    new ParsedFile(file, parseIdentities, `the setting ${setting} names it`, source);
  if ('file' in identity) return open(identity.file, 'identity.file');
  const { directory } = identity;
  if (directory.kind !== 'file') return undefined;
  return open(directory.file, 'identity.directory.file');
}

function keyFile(identity: Settings['identity']): ParsedFile<JSONWebKeySet> | undefined {
  if (identity.kind !== 'jwt' || identity.keyFile === undefined) return undefined;
  const { algorithms } = identity;
  const parseKeys = (text: string, file: string) => parseKeyFile(text, file, algorithms);
  return new ParsedFile(identity.keyFile, parseKeys, 'the setting identity.keyFile names it');
}
