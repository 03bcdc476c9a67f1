import type { JSONWebKeySet } from 'jose';
import { type CostedOperation, checkCosts, type LimitPlaces, placesIn } from '../config/checks/costs.ts';
import { checkSelections } from '../config/checks/selections.ts';
import { checkProxySettings } from '../config/files/certificates.ts';
import type { Identities } from '../config/files/identities/parse-identities.ts';
import type { LimitsFiles } from '../config/files/limits/limits-files.ts';
import { configurationFiles, isComplete, loadSettings, readSettings } from '../config/load.ts';
import { ConfigError, type Problem, problemIn, problemsOf } from '../config/problem.ts';
import { FileSource } from '../config/reader/file-source.ts';
import { readSecretFile } from '../config/settings/notifications-settings.ts';
import { type PortTokenSettings, readTokenFile } from '../config/settings/port-token.ts';
import type { Settings } from '../config/settings/settings.ts';
import type { DescriptorRules } from '../domain/limits/descriptors.ts';
import type { Limits } from '../domain/limits/limits.ts';
import { TokenTable } from '../domain/token-digest.ts';
import type { ListedOperation } from '../operations/listed-operation.ts';
import { OperationFiles } from '../operations/operation-files.ts';
import { OperationTable, unlistedOperations, unlistedPolicy } from '../stages/match.ts';

/** The content of the files of an `identity` section. */
interface IdentityContent {
  /** Empty where no identities file is named. */
  readonly identities: Identities;
  /** Of the key file, where one is named. */
  readonly keys: JSONWebKeySet | undefined;
}

/** The content of every file that a gateway reads. */
export interface Configuration extends IdentityContent {
  readonly settings: Settings;
  readonly limits: Limits;
  /** The same of each of the `credentials` with an `identity` of its own; undefined for the others. */
  readonly credentials: readonly (IdentityContent | undefined)[];
  readonly operations: readonly ListedOperation[];
  /** The rules of Envoy's rate limit service; empty without one. */
  readonly descriptors: DescriptorRules;
  /** The files. */
  readonly files: ReturnType<typeof configurationFiles> & {
    readonly limits: LimitsFiles;
    readonly operations: OperationFiles;
    /** What the other files are read through. */
    readonly source: FileSource;
    /** weir.yaml, which is not reloaded. `read` throws a ConfigError that carries every problem. */
    readonly settings: { readonly file: string; read(): Settings };
  };
}

/** Receives the content of changed files. */
export interface Reloadable {
  limits(limits: Limits): void;
  operations(operations: readonly ListedOperation[]): void;
  identities(identities: Identities): void;
  /** The identities of the entry of `credentials` with this index. */
  credential(index: number, identities: Identities): void;
  /** The rules of Envoy's rate limit service. */
  descriptors(rules: DescriptorRules): void;
}

/** The operations of a configuration, ready to match requests. */
export function operationTableOf({ settings, operations }: Configuration): OperationTable {
  const { pathProfile } = settings.upstream;
  return new OperationTable(
    operations,
    unlistedPolicy(settings.operations),
    pathProfile.case,
    pathProfile.trailingSlash,
  );
}

const NO_IDENTITIES: Identities = { tokens: new TokenTable(0), principals: new Map(), accounts: new Map() };

const PORTS_WITH_TOKEN = ['admin', 'decisions'] as const;

/** @throws ConfigError if the file with a port's token cannot be used */
function readPortToken(section: string, { token, tokenFile }: PortTokenSettings = {}): void {
  if (token === undefined && tokenFile !== undefined) readTokenFile(tokenFile, `${section}.tokenFile`);
}

/**
 * Reads the process settings and every file that they name. An invalid setting does not keep other files from being read.
 *
 * @throws ConfigError with the problems of all files together
 */
export async function readConfiguration(file: string, env: NodeJS.ProcessEnv): Promise<Configuration> {
  const reading = readSettings(file, env);
  const { valid } = reading;
  const problems: Problem[] = [...reading.problems];
  const collect = async <Value>(read: () => Value | Promise<Value>): Promise<Value | undefined> => {
    try {
      return await read();
    } catch (error) {
      problems.push(...problemsOf(error));
      return undefined;
    }
  };
  const source = new FileSource();
  const named = configurationFiles(valid, source);
  const letterCase = valid.upstream?.pathProfile.case;
  const operationFiles = valid.operations && new OperationFiles(valid.operations, file, source, letterCase);
  await collect(() => checkProxySettings(valid, reading.place));
  for (const section of PORTS_WITH_TOKEN) await collect(() => readPortToken(section, valid[section]));
  const secretFile = valid.notifications?.secretFile;
  await collect(() => secretFile && readSecretFile(secretFile));
  for (const certificates of Object.values(named.certificates)) await collect(() => certificates?.read());
  const limits = await collect(() => named.limits?.load());
  const identities = await collect(() => named.identities?.load() ?? NO_IDENTITIES);
  const keys = await collect(() => named.keys?.load());
  const credentials: (IdentityContent | undefined)[] = [];
  for (const own of named.credentials) {
    const read = await collect(
      async () =>
        own && { identities: (await own.identities?.load()) ?? NO_IDENTITIES, keys: await own.keys?.load() },
    );
    credentials.push(read);
  }
  const operations = await collect(() => operationFiles?.load());
  const descriptors = await collect(() => named.descriptors?.load() ?? new Map());
  if (limits !== undefined && operations !== undefined)
    problems.push(...findCosts(operations, limits, valid, named.limits));

  const files = named.limits &&
    operationFiles && {
      ...named,
      limits: named.limits,
      operations: operationFiles,
      source,
      settings: { file, read: () => loadSettings(file, env) },
    };
  const isRead = files !== undefined && limits !== undefined && operations !== undefined;
  const isNamed = identities !== undefined && descriptors !== undefined;
  if (!isRead || !isNamed || problems.length > 0 || !isComplete(reading)) {
    throw new ConfigError(problems);
  }
  const { valid: settings } = reading;
  return { settings, limits, identities, keys, credentials, operations, descriptors, files };
}

/** The operations that are charged, unlisted ones included. */
export function chargedOperations(
  operations: readonly ListedOperation[],
  settings: Partial<Settings>,
): readonly CostedOperation[] {
  const { unlisted = 'reject' } = settings.operations ?? {};
  const others = unlisted === 'reject' ? [] : Object.values(unlistedOperations(unlisted));
  return [...operations, ...others];
}

/** The operations that could never be served; what is charged besides the listed ones has to fit its buckets as well. */
export function findCosts(
  operations: readonly ListedOperation[],
  limits: Limits,
  settings: Partial<Settings>,
  places: LimitPlaces = placesIn(settings.limits?.file ?? ''),
): readonly Problem[] {
  const all = chargedOperations(operations, settings);
  return [
    ...checkCosts(all, limits, places),
    ...checkSelections(all, limits, places),
    ...checkUsagePath(operations, settings),
  ];
}

/** Operations that requests never reach, because the gateway answers at their path. A router may take any letter case for the same. */
function checkUsagePath(
  operations: readonly ListedOperation[],
  { usage }: Partial<Settings>,
): readonly Problem[] {
  const isTaken = ({ path }: ListedOperation) => path.toLowerCase() === usage?.path?.toLowerCase();
  return operations
    .filter(isTaken)
    .map(({ method, path, writtenAt }) =>
      problemIn(
        writtenAt,
        `${method} ${path} has the path of the setting usage.path`,
        'choose another path for one of them',
      ),
    );
}
