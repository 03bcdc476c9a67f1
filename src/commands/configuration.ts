import type { JSONWebKeySet } from 'jose';
import { checkCosts } from '../config/costs.ts';
import type { Identities } from '../config/identities.ts';
import type { Limits } from '../config/limits.ts';
import { type ConfigurationFiles, configurationFiles, loadSettings } from '../config/load.ts';
import type { ListedOperation } from '../config/openapi.ts';
import { ConfigError, type Problem } from '../config/problem.ts';
import type { Settings } from '../config/settings.ts';

/** Every file that a gateway reads, read. */
export interface Configuration {
  readonly settings: Settings;
  readonly limits: Limits;
  /** Empty where no identities file is named. */
  readonly identities: Identities;
  /** Of the key file, where one is named. */
  readonly keys: JSONWebKeySet | undefined;
  readonly operations: readonly ListedOperation[];
  /** Where all of it came from. */
  readonly files: ConfigurationFiles;
}

const NO_IDENTITIES: Identities = { tokens: new Map(), accounts: new Map() };

/**
 * Reads the process settings and every file that they name.
 *
 * @throws ConfigError with the problems of all files together
 */
export function readConfiguration(file: string, env: NodeJS.ProcessEnv): Configuration {
  const settings = loadSettings(file, env);
  const problems: Problem[] = [];
  const collect = <Value>(read: () => Value): Value | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  };
  const files = configurationFiles(settings);
  const limits = collect(() => files.limits.load());
  const identities = collect(() => files.identities?.read() ?? NO_IDENTITIES);
  const keys = collect(() => files.keys?.read());
  const operations = collect(() => files.operations.read());
  if (limits !== undefined && operations !== undefined) {
    problems.push(...checkCosts(operations, limits, settings.limits.file));
  }
  if (limits === undefined || identities === undefined || operations === undefined || problems.length > 0) {
    throw new ConfigError(problems);
  }
  return { settings, limits, identities, keys, operations, files };
}
