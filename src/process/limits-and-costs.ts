import { ConfigError } from '../config/problem.ts';
import { type Watch, type Watched, watchFiles } from '../config/watch.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { ListedOperation } from '../operations/listed-operation.ts';
import { type Configuration, findCosts, type Reloadable } from './configuration.ts';

/** How files are looked at, and what is reported of their changes. */
export interface FileReport extends Pick<Watched<unknown>, 'stateOf' | 'onProblems'> {
  /** A change is in force. */
  taken(): void;
}

interface InForce {
  readonly limits: Limits;
  readonly operations: readonly ListedOperation[];
}

/**
 * Follows the limits and the costs. They have to agree, because a request that costs more than a limit could never be served. Each
 * change is checked against what is in force of the other file, so one of two changes may have to wait for the other.
 *
 * An example: the limit is 10 and a cost is 10. One commit lowers both to 5.
 *
 * 1. The new limits are read. The cost in force, 10, exceeds the new limit: the change is refused and reported.
 * 2. The new costs are read. The limit in force is still 10: they are in force.
 * 3. Because the costs changed, the next poll of the limits reads the refused files again. They agree now.
 *
 * Where the costs are read first, nothing is refused.
 */
export function followLimitsAndCosts(
  { settings, files, limits, operations }: Configuration,
  receiver: Reloadable,
  reports: Readonly<Record<keyof InForce, FileReport>> & {
    /** Other limits are in force, or the same ones after a change that was refused. */
    inForce(before: Limits, limits: Limits): void;
  },
): readonly Watch[] {
  let inForce: InForce = { limits, operations };
  /** Puts a change of one file in force, or throws. */
  const change = (file: keyof InForce, next: InForce, take: () => void): void => {
    const problems = findCosts(next.operations, next.limits, settings, files.limits.placesOf(next.limits));
    if (problems.length > 0) throw new ConfigError(problems);
    take();
    inForce = next;
    watches[file === 'limits' ? 'operations' : 'limits'].retry();
    reports[file].taken();
  };
  const watches: Readonly<Record<keyof InForce, Watch>> = {
    limits: watchFiles<Limits>({
      ...reports.limits,
      current: limits,
      files: () => files.limits.files(),
      load: () => files.limits.load(),
      onLoad(changed) {
        change('limits', { ...inForce, limits: changed }, () => {
          files.limits.take(changed);
          receiver.limits(changed);
          reports.inForce(inForce.limits, changed);
        });
      },
    }),
    operations: watchFiles<readonly ListedOperation[]>({
      ...reports.operations,
      current: operations,
      files: () => files.operations.files(),
      load: () => files.operations.load(),
      onLoad(changed) {
        change('operations', { ...inForce, operations: changed }, () => receiver.operations(changed));
      },
    }),
  };
  return [watches.limits, watches.operations];
}
