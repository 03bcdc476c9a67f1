import type { JSONWebKeySet } from 'jose';
import { checkCosts, type PricedOperation } from '../config/costs.ts';
import type { Identities } from '../config/identities.ts';
import type { Limits } from '../config/limits.ts';
import { type ConfigurationFiles, configurationFiles, loadSettings } from '../config/load.ts';
import { ConfigError, type Problem } from '../config/problem.ts';
import { checkProxySettings } from '../config/proxy-check.ts';
import type { Settings } from '../config/settings.ts';
import { unlistedOperations } from '../gateway/operations.ts';
import type { ListedOperation } from '../openapi/listed-operation.ts';
import { OperationFiles } from '../openapi/operation-files.ts';

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
  readonly files: ConfigurationFiles & { readonly operations: OperationFiles };
}

const NO_IDENTITIES: Identities = { tokens: new Map(), accounts: new Map() };

/**
 * Reads the process settings and every file that they name.
 *
 * @throws ConfigError with the problems of all files together
 */
export async function readConfiguration(file: string, env: NodeJS.ProcessEnv): Promise<Configuration> {
  const settings = loadSettings(file, env);
  const problems: Problem[] = [];
  const collect = async <Value>(read: () => Value | Promise<Value>): Promise<Value | undefined> => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  };
  const files = {
    ...configurationFiles(settings),
    operations: new OperationFiles(settings.operations, file),
  };
  await collect(() => checkProxySettings(settings, file));
  const limits = await collect(() => files.limits.load());
  const identities = await collect(() => files.identities?.read() ?? NO_IDENTITIES);
  const keys = await collect(() => files.keys?.read());
  const operations = await collect(() => files.operations.load());
  if (limits !== undefined && operations !== undefined) {
    problems.push(...findCosts(operations, limits, settings));
  }
  if (limits === undefined || identities === undefined || operations === undefined || problems.length > 0) {
    throw new ConfigError(problems);
  }
  return { settings, limits, identities, keys, operations, files };
}

/** The operations that could never pass; what is charged besides the listed ones has to fit its buckets as well. */
export function findCosts(
  operations: readonly ListedOperation[],
  limits: Limits,
  settings: Settings,
): readonly Problem[] {
  const { unlisted } = settings.operations;
  const others: readonly PricedOperation[] =
    unlisted === 'reject' ? [] : Object.values(unlistedOperations(unlisted));
  return checkCosts([...operations, ...others], limits, settings.limits.file);
}
