import { checkCosts } from '../config/costs.ts';
import type { Identities } from '../config/identities.ts';
import type { Limits } from '../config/limits.ts';
import { loadIdentities, loadLimits, loadSettings } from '../config/load.ts';
import { type ListedOperation, loadOperations } from '../config/openapi.ts';
import { ConfigError, type Problem } from '../config/problem.ts';
import type { Settings } from '../config/settings.ts';

/** Every file that a gateway reads, read. */
export interface Configuration {
  readonly settings: Settings;
  readonly limits: Limits;
  readonly identities: Identities;
  readonly operations: readonly ListedOperation[];
}

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
  const limits = collect(() => loadLimits(settings.limits.file));
  const identities = collect(() => loadIdentities(settings.identity.file));
  const operations = collect(() => loadOperations(settings.operations.openapi));
  if (limits !== undefined && operations !== undefined) {
    problems.push(...checkCosts(operations, limits, settings.limits.file));
  }
  if (limits === undefined || identities === undefined || operations === undefined || problems.length > 0) {
    throw new ConfigError(problems);
  }
  return { settings, limits, identities, operations };
}
