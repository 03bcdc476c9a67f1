import { existsSync } from 'node:fs';
import { checkCosts, placesIn } from '../../config/checks/costs.ts';
import { checkSelections } from '../../config/checks/selections.ts';
import { LimitsFiles } from '../../config/files/limits/limits-files.ts';
import { parseLimits } from '../../config/files/limits/parse-limits.ts';
import { readSettings } from '../../config/load.ts';
import { ConfigError, formatProblem } from '../../config/problem.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { printable } from '../../domain/printable.ts';
import { CommandError } from '../../process/failure.ts';
import { operationFinder, readCosts } from '../../replay/replay-costs.ts';
import type { GivenPlan } from '../../replay/unmatched.ts';
import { SETTINGS_FILE } from '../options.ts';
import { printError } from '../print.ts';

/** The files that a replay takes its limits and costs from. */
export interface CandidateFlags {
  readonly limits?: string;
  readonly config?: string;
  readonly operations?: string;
  /** Such as `acct_1=pro`. */
  readonly plan?: readonly string[];
}

/** The limits and costs to replay. */
export type Candidate = Awaited<ReturnType<typeof readCandidate>>;

/**
 * Reads limits and costs.
 *
 * @param isOptional whether to use the default limits of the contract if none are named
 */
export async function readCandidate(flags: CandidateFlags, isOptional: boolean) {
  const { limits: file, operations: document } = flags;
  const config = flags.config ?? (existsSync(SETTINGS_FILE) ? SETTINGS_FILE : undefined);
  const settings = config === undefined ? {} : settingsOf(config);
  const read = await readLimits(file, settings.limits, isOptional);
  const { limitsName } = read;
  const plans = (flags.plan ?? []).map((text) => givenPlan(text, read.limits));
  const limits = plans.reduce(withPlan, read.limits);
  const operations = await readCosts(document, settings, config ?? '');
  return {
    limits,
    /** The plans of --plan, which the limits have. */
    plans,
    /** A description of their source. */
    limitsName,
    operations,
    /** Undefined if requests have the cost that is in the log. */
    finder: operations && operationFinder(operations, settings),
  };
}

/** What --plan says. Throws a CommandError unless it is an Account and a plan of the limits. */
function givenPlan(text: string, limits: Limits): GivenPlan {
  const [, account = '', name = ''] = /^([^=]+)=([^=]+)$/.exec(text) ?? [];
  if (account === '')
    throw new CommandError(`--plan takes an Account and a plan, as in acct_1=pro, not ${text}.`);
  if (!limits.plans.has(name)) {
    const known = [...limits.plans.keys()];
    const hint = known.length === 0 ? 'they have no plans' : `they have ${known.join(', ')}`;
    throw new CommandError(`--plan ${text}: the limits have no plan ${name}: ${hint}.`);
  }
  return { account, plan: name };
}

/** The limits with another plan for one Account. */
function withPlan(limits: Limits, { account, plan: name }: GivenPlan): Limits {
  const overrides = { limits: {}, ...limits.accounts.get(account), plan: { name } };
  return { ...limits, accounts: new Map(limits.accounts).set(account, overrides) };
}

/** Warns of limits that the gateway would not load, because an operation costs more than the limit. */
export function warnOfCosts({ operations, limits, limitsName }: Candidate): void {
  if (operations === undefined) return;
  const places = placesIn(limitsName);
  const problems = [
    ...checkCosts(operations, limits, places),
    ...checkSelections(operations, limits, places),
  ];
  for (const problem of problems) {
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
    `Name the limits to replay with --limits, or settings that name them with --config. This folder has no ${SETTINGS_FILE}.`,
  );
}
