import { type Identities, parseIdentities } from './identities.ts';
import { LimitsFiles } from './limits-files.ts';
import { type ListedOperation, parseOperations } from './openapi.ts';
import type { Environment } from './reader/environment.ts';
import { parse, resolveFiles } from './reader/parse.ts';
import { ParsedFile } from './reader/parsed-file.ts';
import { readText } from './reader/read-text.ts';
import { type Settings, settingsSchema } from './settings.ts';

/** weir.yaml with the environment laid over it. Throws a ConfigError that carries every problem. */
export function loadSettings(path: string, env: Environment): Settings {
  const { value } = parse(settingsSchema, readText(path, 'name another with --config'), path, env);
  return resolveFiles(settingsSchema, value, path);
}

/** The files that the settings name, to be read now and again while running. */
export interface ConfigurationFiles {
  readonly limits: LimitsFiles;
  readonly operations: ParsedFile<readonly ListedOperation[]>;
  readonly identities: ParsedFile<Identities>;
}

export function configurationFiles({ limits, operations, identity }: Settings): ConfigurationFiles {
  return {
    limits: new LimitsFiles(limits.file, limits.overrides),
    operations: new ParsedFile(
      operations.openapi,
      parseOperations,
      'the setting operations.openapi names it',
    ),
    identities: new ParsedFile(identity.file, parseIdentities, 'the setting identity.file names it'),
  };
}
