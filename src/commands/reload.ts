import type { Logger } from 'pino';
import type { Identities } from '../config/identities.ts';
import type { Limits } from '../config/limits.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import type { Settings } from '../config/settings.ts';
import { type ReloadedFile, type ReloadObserver, type Watched, watchFiles } from '../config/watch.ts';
import type { ListedOperation } from '../openapi/listed-operation.ts';
import { type Configuration, findCosts } from './configuration.ts';

/** Whom to hand changed files to. */
export interface Reloadable {
  limits(limits: Limits): void;
  operations(operations: readonly ListedOperation[]): void;
  identities(identities: Identities): void;
}

/**
 * Follows the files of a configuration until it is closed: a change is put in force within two seconds, or refused
 * as a whole while what was in force stays. Limits and prices are checked against each other; where both change, one
 * may have to wait for the other.
 */
export function followFiles(
  { settings, files, ...now }: Configuration,
  reloadable: Reloadable,
  observer: ReloadObserver,
  log: Logger,
): { close(): void } {
  const told = (file: ReloadedFile) => reporter(file, observer, log);
  let { limits, operations } = now;
  const limitsWatch = watchFiles<Limits>({
    ...told('limits'),
    current: limits,
    files: () => files.limits.files(),
    load: () => files.limits.reload(),
    onLoad(changed) {
      refuseCosts(operations, changed, settings);
      reloadable.limits(changed);
      limits = changed;
      operationsWatch.retry();
      told('limits').taken();
    },
  });
  const operationsWatch = watchFiles<readonly ListedOperation[]>({
    ...told('operations'),
    current: operations,
    files: () => files.operations.files(),
    load: () => files.operations.load(),
    onLoad(changed) {
      refuseCosts(changed, limits, settings);
      reloadable.operations(changed);
      operations = changed;
      limitsWatch.retry();
      told('operations').taken();
    },
  });
  const identitiesFile = files.identities;
  const identitiesWatch =
    identitiesFile &&
    watchFiles<Identities>({
      ...told('identities'),
      current: now.identities,
      files: () => [identitiesFile.file],
      load: () => identitiesFile.read(),
      onLoad(changed) {
        reloadable.identities(changed);
        told('identities').taken();
      },
    });
  return {
    close() {
      for (const watch of [limitsWatch, operationsWatch, identitiesWatch]) watch?.close();
    },
  };
}

function refuseCosts(operations: readonly ListedOperation[], limits: Limits, settings: Settings): void {
  const problems = findCosts(operations, limits, settings);
  if (problems.length > 0) throw new ConfigError(problems);
}

function reporter(
  file: ReloadedFile,
  observer: ReloadObserver,
  log: Logger,
): Pick<Watched<unknown>, 'onProblems'> & { taken(): void } {
  return {
    taken() {
      observer.reloaded(file);
      log.info({ file }, `changed ${file} are in force`);
    },
    onProblems(problems) {
      observer.reloadRefused(file);
      log.error(
        { file, problems: problems.map(formatProblem) },
        `changed ${file} are refused: the old stay in force`,
      );
    },
  };
}
