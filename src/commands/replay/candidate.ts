import { checkCosts, placesIn } from '../../config/files/costs.ts';
import { LimitsFiles } from '../../config/files/limits/files.ts';
import { parseLimits } from '../../config/files/limits/parse.ts';
import { readSettings } from '../../config/load.ts';
import { ConfigError, formatProblem } from '../../config/problem.ts';
import type { Limits } from '../../domain/limits.ts';
import type { ListedOperation } from '../../openapi/listed-operation.ts';
import type { PriceOf } from '../../replay/input/entry.ts';
import { priceFinder, readPrices } from '../../replay/prices.ts';
import { CommandError } from '../failure.ts';

/** The files that a replay takes its limits and prices from. */
export interface CandidateFlags {
  readonly limits?: string;
  readonly config?: string;
  readonly operations?: string;
}

/** The limits and prices to replay. */
export interface Candidate {
  readonly limits: Limits;
  /** A description of their source. */
  readonly limitsName: string;
  readonly operations: readonly ListedOperation[] | undefined;
  /** Undefined if requests have the cost that is in the log. */
  readonly priceOf: PriceOf | undefined;
}

/**
 * Reads limits and prices.
 *
 * @param isOptional whether to use the default limits of the contract if none are named
 */
export async function readCandidate(flags: CandidateFlags, isOptional: boolean): Promise<Candidate> {
  const { limits: file, config, operations: document } = flags;
  const settings = config === undefined ? {} : settingsOf(config);
  const { limits, limitsName } = await readLimits(file, settings.limits, isOptional);
  const operations = await readPrices(document, settings, config ?? '');
  return { limits, limitsName, operations, priceOf: operations && priceFinder(operations, settings) };
}

/** Warns of limits that the gateway would not load, because an operation costs more than the limit. */
export function warnOfCosts({ operations, limits, limitsName }: Candidate): void {
  for (const problem of checkCosts(operations ?? [], limits, placesIn(limitsName))) {
    process.stderr.write(`Warning: the gateway does not load these limits: ${formatProblem(problem)}\n`);
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
): Promise<Pick<Candidate, 'limits' | 'limitsName'>> {
  if (file !== undefined) return { limits: await new LimitsFiles(file, []).load(), limitsName: file };
  if (settings !== undefined) {
    const limits = await new LimitsFiles(settings.file, settings.overrides).load();
    return { limits, limitsName: settings.file };
  }
  if (isOptional) return { limits: parseLimits('{}', 'defaults'), limitsName: "Weir's defaults" };
  throw new CommandError(
    'Name the limits to replay with --limits, or settings that name them with --config.',
  );
}
