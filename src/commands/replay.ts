import { statSync, writeFileSync } from 'node:fs';
import { checkCosts } from '../config/costs.ts';
import { LimitsFiles } from '../config/limits/files.ts';
import { readSettings } from '../config/load.ts';
import { ConfigError, formatProblem } from '../config/problem.ts';
import type { Limits } from '../domain/limits.ts';
import type { ListedOperation } from '../openapi/listed-operation.ts';
import { fileSource, type LogSource } from '../replay/input/log-file.ts';
import { weirLog } from '../replay/input/weir-log.ts';
import { priceFinder, readPrices } from '../replay/prices.ts';
import { ProgressLine } from '../replay/progress.ts';
import { RETRIES, type Retries } from '../replay/replay.ts';
import { reportData } from '../replay/report/data.ts';
import { reportHtml } from '../replay/report/report.ts';
import type { ReplayResult } from '../replay/result.ts';
import { runReplay } from '../replay/run.ts';
import { shownShare } from '../replay/shown.ts';
import { replayText } from '../replay/text.ts';
import { CommandError } from './failure.ts';

export { RETRIES };

export interface ReplayFlags {
  readonly limits?: string;
  readonly config?: string;
  readonly operations?: string;
  readonly retries: Retries;
  readonly json?: boolean;
  readonly rows: string;
  readonly report?: string;
  readonly maxRefused?: string;
}

/** More than the share of requests that `--max-refused` allows were refused. */
const TOO_MANY_REFUSED = 2;

/** As a shell reports a command that SIGINT ended. */
const INTERRUPTED = 130;

/** `weir replay`: what other limits or prices would have done to the requests of an access log. */
export async function replay(files: readonly string[], flags: ReplayFlags): Promise<void> {
  const mostRefused = flags.maxRefused === undefined ? undefined : shareOf(flags.maxRefused, '--max-refused');
  const { limits, operations, priceOf } = await readCandidate(flags);
  if (operations !== undefined) warnOfCosts(operations, limits, flags.limits ?? '');
  const sources = sourcesOf(files);
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  const progress = new ProgressLine(process.stderr);
  const run = await runReplay({
    sources,
    readLine: weirLog(priceOf),
    hasLoggedCosts: true,
    priceOf,
    limits,
    retries: flags.retries,
    hasSeries: flags.report !== undefined,
    onProgress: (state) => progress.show(state),
    signal: interrupted.signal,
  });
  process.off('SIGINT', interrupt);
  progress.clear();
  const { result } = run;
  if (flags.report !== undefined) {
    const names = {
      limitsName: flags.limits ?? flags.config ?? '',
      logNames: sources.map(({ name }) => name),
    };
    writeFileSync(flags.report, reportHtml(reportData(result, run.replay, names)));
  }
  process.stdout.write(flags.json ? `${JSON.stringify(result)}\n` : replayText(result, rowsOf(flags.rows)));
  process.exitCode = exitCodeOf(result, mostRefused);
}

interface Candidate {
  readonly limits: Limits;
  readonly operations: readonly ListedOperation[] | undefined;
  readonly priceOf: ReturnType<typeof priceFinder> | undefined;
}

async function readCandidate({
  limits: file,
  config,
  operations: document,
}: ReplayFlags): Promise<Candidate> {
  const settings = config === undefined ? {} : settingsOf(config);
  const limits = await readLimits(file, settings.limits);
  const operations = await readPrices(document, settings, config ?? '');
  return { limits, operations, priceOf: operations && priceFinder(operations, settings) };
}

function settingsOf(config: string) {
  const { sound, problems } = readSettings(config, process.env);
  if (sound.operations === undefined || sound.limits === undefined || sound.upstream === undefined) {
    throw new ConfigError(problems);
  }
  return sound;
}

async function readLimits(
  file: string | undefined,
  settings: { readonly file: string; readonly overrides: readonly string[] } | undefined,
): Promise<Limits> {
  if (file !== undefined) return new LimitsFiles(file, []).load();
  if (settings !== undefined) return new LimitsFiles(settings.file, settings.overrides).load();
  throw new CommandError(
    'Name the limits to replay with --limits, or settings that name them with --config.',
  );
}

function warnOfCosts(operations: readonly ListedOperation[], limits: Limits, source: string): void {
  for (const problem of checkCosts(operations, limits, source)) {
    process.stderr.write(`Warning: the gateway does not load these limits: ${formatProblem(problem)}\n`);
  }
}

function sourcesOf(files: readonly string[]): readonly LogSource[] {
  if (files.length === 0 && process.stdin.isTTY) {
    throw new CommandError('Name the files of an access log, or pipe one into this command.');
  }
  return (files.length === 0 ? ['-'] : files).map(sourceOf);
}

function sourceOf(file: string): LogSource {
  if (file === '-') return { name: 'standard input', bytes: undefined, open: () => process.stdin };
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) throw new CommandError(`There is no file ${file}.`);
  if (stats.isDirectory())
    throw new CommandError(`${file} is a folder: name the files in it, such as ${file}/*.`);
  return fileSource(file, stats.isFile() ? stats.size : undefined);
}

/** `0.1%` or `0.001` as a share from 0 to 1. */
function shareOf(text: string, option: string): number {
  const [, digits, percent] = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text) ?? [];
  const share = Number(digits) / (percent === '%' ? 100 : 1);
  if (!(share >= 0 && share <= 1)) {
    throw new CommandError(`${option} takes a share such as 0.1% or 0.001, not ${text}.`);
  }
  return share;
}

function rowsOf(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new CommandError(`--rows takes a whole number, not ${text}.`);
  return Number(text);
}

function exitCodeOf({ complete, shareRefused }: ReplayResult, mostRefused: number | undefined): number {
  if (!complete) return INTERRUPTED;
  if (mostRefused === undefined || shareRefused.after <= mostRefused) return 0;
  process.stderr.write(
    `${shownShare(shareRefused.after)} of the requests are refused, more than --max-refused allows.\n`,
  );
  return TOO_MANY_REFUSED;
}
