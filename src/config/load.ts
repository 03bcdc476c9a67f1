import type { JSONWebKeySet } from 'jose';
import { identityFindings } from './callers/findings.ts';
import { parseKeyFile } from './callers/key-file.ts';
import { type Identities, parseIdentities } from './identities.ts';
import { LimitsFiles } from './limits/files.ts';
import { ConfigError } from './problem.ts';
import type { Environment } from './reader/environment.ts';
import { parse, resolveFiles } from './reader/parse.ts';
import { ParsedFile } from './reader/parsed-file.ts';
import { readText } from './reader/read-text.ts';
import { type Settings, settingsSchema } from './settings.ts';

/** weir.yaml with the environment laid over it. Throws a ConfigError that carries every problem. */
export function loadSettings(path: string, env: Environment): Settings {
  const { value, place } = parse(settingsSchema, readText(path, 'name another with --config'), path, env);
  const findings = identityFindings(value.identity);
  if (findings.length > 0) throw new ConfigError(findings.map(place));
  return resolveFiles(settingsSchema, value, path);
}

/** The files that the settings name, save those of the operations, to be read now and again while running. */
export interface ConfigurationFiles {
  readonly limits: LimitsFiles;
  /** Undefined where callers and Accounts are known from elsewhere. */
  readonly identities: ParsedFile<Identities> | undefined;
  /** The public keys of token issuers; undefined where they come from elsewhere. */
  readonly keys: ParsedFile<JSONWebKeySet> | undefined;
}

export function configurationFiles({ limits, identity }: Settings): ConfigurationFiles {
  return {
    limits: new LimitsFiles(limits.file, limits.overrides),
    identities: identitiesFile(identity),
    keys: keyFile(identity),
  };
}

function identitiesFile(identity: Settings['identity']): ParsedFile<Identities> | undefined {
  if (identity.kind === 'static') {
    return new ParsedFile(identity.file, parseIdentities, 'the setting identity.file names it');
  }
  const { directory } = identity;
  if (directory.kind !== 'file') return undefined;
  return new ParsedFile(directory.file, parseIdentities, 'the setting identity.directory.file names it');
}

function keyFile(identity: Settings['identity']): ParsedFile<JSONWebKeySet> | undefined {
  if (identity.kind !== 'jwt' || identity.keyFile === undefined) return undefined;
  const { algorithms } = identity;
  const parseKeys = (text: string, file: string) => parseKeyFile(text, file, algorithms);
  return new ParsedFile(identity.keyFile, parseKeys, 'the setting identity.keyFile names it');
}
