import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { Identities } from '../config/files/identities/parse-identities.ts';
import { differenceOf } from '../config/files/limits/difference.ts';
import { followKubernetes } from '../config/kubernetes/follow.ts';
import { formatProblem } from '../config/problem.ts';
import type { FileSource, ParsedFile } from '../config/reader/file-source.ts';
import type { Settings } from '../config/settings/settings.ts';
import { type ReloadedFile, type ReloadObserver, type Watch, watchFiles } from '../config/watch.ts';
import type { DescriptorRules } from '../domain/limits/descriptors.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { Changes } from '../observe/log/noticed-changes.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { Configuration, Reloadable } from './configuration.ts';
import { type FileReport, followLimitsAndCosts } from './limits-and-costs.ts';
import { reportingChanges } from './report-changes.ts';

/** Follows the files of a configuration, and the ConfigMaps that they are mounted from, until it is closed. */
export function followConfiguration(
  configuration: Configuration,
  reloadable: Reloadable,
  observer: Metrics,
  { log, changes }: { readonly log: Logger; readonly changes: Changes },
): { close(): void } {
  const { settings, files } = configuration;
  const reporting = reportingChanges(reloadable, configuration, changes, observer);
  const { changed, close } = followFiles(configuration, reporting, observer, { log, changes });
  const objects = followKubernetes(settings.kubernetes, files.source, observer, log, changed);
  return {
    close() {
      objects.close();
      close();
    },
  };
}

/**
 * Follows the files of a configuration until it is closed. A change takes effect within two seconds, or is refused as a
 * whole and the previous version stays in force.
 */
function followFiles(
  configuration: Configuration,
  reloadable: Reloadable,
  observer: ReloadObserver,
  { log, changes }: { readonly log: Logger; readonly changes: Changes },
) {
  const { settings, files } = configuration;
  const reporterOf = (file: ReloadedFile, part?: string) => reporter(file, files.source, observer, log, part);
  observer.limitsInForce(files.limits.version);
  const pricing = followLimitsAndCosts(configuration, reloadable, {
    limits: reporterOf('limits'),
    operations: reporterOf('operations'),
    inForce(before, limits) {
      const sha = files.limits.version;
      observer.limitsInForce(sha);
      if (before !== limits) logDifference(before, limits, sha, changes);
    },
  });
  const identities = watchIdentities(files, configuration, reloadable, (part) =>
    reporterOf('identities', part),
  );
  const descriptors = watchDescriptors(configuration, reloadable, reporterOf('descriptors'));
  const watches = [...pricing, ...identities, ...descriptors];
  const settingsWatch = watchSettings(settings, files.settings, log);
  return {
    /** Checks the files now, because they may have changed: a change takes effect when the second check finds it. */
    changed() {
      for (const watch of watches) {
        void watch.poll();
        void watch.poll();
      }
    },
    close() {
      for (const watch of [...watches, settingsWatch]) watch.close();
    },
  };
}

/** Follows the identities files of the `identity` section and of the `credentials`. */
function watchIdentities(
  files: Configuration['files'],
  { identities, credentials }: Configuration,
  reloadable: Reloadable,
  reportOf: (part: string) => FileReport,
): readonly Watch[] {
  const watch = (
    part: string,
    file: ParsedFile<Identities> | undefined,
    current: Identities | undefined,
    take: (changed: Identities) => void,
  ): readonly Watch[] => {
    if (file === undefined || current === undefined) return [];
    const report = reportOf(part);
    const onLoad = (changed: Identities) => {
      take(changed);
      report.taken();
    };
    return [watchFiles({ ...report, current, files: () => [file.file], load: () => file.load(), onLoad })];
  };
  const own = files.credentials.flatMap((one, index) =>
    watch(`credentials.${index}`, one?.identities, credentials[index]?.identities, (changed) =>
      reloadable.credential(index, changed),
    ),
  );
  const main = watch('identity', files.identities, identities, (changed) => reloadable.identities(changed));
  return [...main, ...own];
}

/** Follows the files of `decisions.envoy`. */
function watchDescriptors(
  { files: { descriptors: files }, descriptors: current }: Configuration,
  reloadable: Reloadable,
  report: FileReport,
): readonly Watch[] {
  if (files === undefined) return [];
  const onLoad = (changed: DescriptorRules) => {
    reloadable.descriptors(changed);
    report.taken();
  };
  return [watchFiles({ ...report, current, files: () => files.files(), load: () => files.load(), onLoad })];
}

/** Logs `limits.changed` once the difference has been computed, which takes a while with many overrides. */
function logDifference(before: Limits, changed: Limits, sha: string, changes: Changes): void {
  void differenceOf(before, changed).then((difference) =>
    changes.info({ source: 'files', sha, ...difference }, 'limits.changed'),
  );
}

/** Warns about a change of weir.yaml, which takes effect only with a restart. */
function watchSettings(
  inForce: Settings,
  { file, read }: Configuration['files']['settings'],
  log: Logger,
): Watch {
  return watchFiles<Settings>({
    current: inForce,
    files: () => [file],
    load: read,
    onLoad(changed) {
      if (!isDeepStrictEqual(changed, inForce))
        log.warn({ file }, `${file} has changed: restart to apply it`);
    },
    onProblems(problems) {
      log.warn(
        { file, problems: problems.map(formatProblem) },
        `${file} has changed and is invalid: weir would not start with it`,
      );
    },
  });
}

function reporter(
  file: ReloadedFile,
  source: FileSource,
  observer: ReloadObserver,
  log: Logger,
  part?: string,
): FileReport {
  return {
    stateOf: (path) => source.stateOf(path),
    taken() {
      observer.reloaded(file, part);
      log.info({ file }, `changed ${file} are in force`);
    },
    onProblems(problems) {
      observer.reloadRefused(file, part);
      log.error(
        { file, problems: problems.map(formatProblem) },
        `changed ${file} are refused: the previous version stays in force`,
      );
    },
  };
}
