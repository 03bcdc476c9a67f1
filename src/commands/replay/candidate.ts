import { checkCosts, placesIn } from '../../config/files/costs.ts';
import { LimitsFiles } from '../../config/files/limits/files.ts';
import { parseLimits } from '../../config/files/limits/parse.ts';
import { readSettings } from '../../config/load.ts';
import { ConfigError, formatProblem } from '../../config/problem.ts';
import { printable } from '../../domain/printable.ts';
import { CommandError } from '../../process/failure.ts';
import { costFinder, readCosts } from '../../replay/costs.ts';
import { printError } from '../print.ts';

/** The files that a replay takes its limits and costs from. */
export interface CandidateFlags {
  readonly limits?: string;
  readonly config?: string;
  readonly operations?: string;
}

/** The limits and costs to replay. */
export type Candidate = Awaited<ReturnType<typeof readCandidate>>;

/**
 * Reads limits and costs.
 *
 * @param isOptional whether to use the default limits of the contract if none are named
 */
export async function readCandidate(flags: CandidateFlags, isOptional: boolean) {
  const { limits: file, config, operations: document } = flags;
  const settings = config === undefined ? {} : settingsOf(config);
  const { limits, limitsName } = await readLimits(file, settings.limits, isOptional);
  const operations = await readCosts(document, settings, config ?? '');
  return {
    limits,
    /** A description of their source. */
    limitsName,
    operations,
    /** Undefined if requests have the cost that is in the log. */
    costOf: operations && costFinder(operations, settings),
  };
}

/** Warns of limits that the gateway would not load, because an operation costs more than the limit. */
export function warnOfCosts({ operations, limits, limitsName }: Candidate): void {
  for (const problem of checkCosts(operations ?? [], limits, placesIn(limitsName))) {
    printError(`Warning: the gateway does not load these limits: ${formatProblem(problem)}`);
  }
}

function settingsOf(config: string) {
  const { valid, problems } = readSettings(config, process.env);
  if (valid.operations === undefined || valid.limits === undefined || valid.upstream === undefined) {
    throw new ConfigError(problems);
  }
  return valid;
}

async function readLimits(
  file: string | undefined,
  settings: { readonly file: string; readonly overrides: readonly string[] } | undefined,
  isOptional: boolean,
) {
  if (file !== undefined)
    return { limits: await new LimitsFiles(file, []).load(), limitsName: printable(file) };
  if (settings !== undefined) {
    const limits = await new LimitsFiles(settings.file, settings.overrides).load();
    return { limits, limitsName: printable(settings.file) };
  }
  if (isOptional) return { limits: parseLimits('{}', 'defaults'), limitsName: "Weir's defaults" };
  throw new CommandError(
    'Name the limits to replay with --limits, or settings that name them with --config.',
  );
}
