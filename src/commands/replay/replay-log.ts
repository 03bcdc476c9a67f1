import { existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { reportData, reportHtml } from '../../console/report/report.ts';
import { shownShare } from '../../domain/shown.ts';
import { CommandError } from '../../process/failure.ts';
import type { LogSource } from '../../replay/input/log-file.ts';
import { ProgressLine } from '../../replay/progress.ts';
import type { Retries } from '../../replay/replay.ts';
import { type ReplayResult, runReplay } from '../../replay/run-replay.ts';
import { limitsJson } from '../../replay/suggest/limits-json.ts';
import { limitsYaml } from '../../replay/suggest/limits-yaml.ts';
import type { Aim } from '../../replay/suggest/search.ts';
import { replayLines } from '../../replay/text.ts';
import { unmatchedText } from '../../replay/unmatched.ts';
import { printError, printExactly, printJsonExactly } from '../print.ts';
import { standardError } from '../terminal/output.ts';
import { type Candidate, type CandidateFlags, readCandidate, warnOfCosts } from './candidate.ts';
import { type FormatFlags, formatOf, sourcesOf, unreadProblem } from './input.ts';
import { readDemand, suggestedLimits } from './suggest.ts';

interface ReplayFlags extends CandidateFlags, FormatFlags {
  readonly retries: Retries;
  readonly json?: boolean;
  readonly rows: string;
  readonly report?: string;
  readonly suggest?: string;
  readonly confidence?: string;
  readonly maxRefused?: string;
}

/** Of a suggestion. */
const DEFAULT_CONFIDENCE = 0.95;

/** Exit code if more requests were refused than `--max-refused` allows, or a limit's selection matched nothing. */
const FAILED = 2;

/** Exit code if the numbers say nothing, because nothing or too little of the log was read. */
const UNREAD = 1;

/** Exit code after SIGINT, as in a shell. */
const INTERRUPTED = 130;

/** `weir replay`: the effect of other limits or costs on the requests of an access log. */
export async function replay(files: readonly string[], flags: ReplayFlags): Promise<void> {
  const suggested = shareOf(flags.suggest, '--suggest');
  if (suggested !== undefined && (flags.report ?? flags.maxRefused) !== undefined) {
    throw new CommandError('--suggest prints limits: replay those for --report or --max-refused.');
  }
  const confidence = confidenceOf(flags);
  const candidate = await readCandidate(flags, suggested !== undefined);
  const sources = sourcesOf(files);
  if (suggested === undefined) await replayLog(sources, candidate, flags);
  else await printSuggestion(sources, candidate, flags, { mostRefused: suggested, confidence });
}

async function replayLog(
  sources: readonly LogSource[],
  candidate: Candidate,
  flags: ReplayFlags,
): Promise<void> {
  const mostRefused = shareOf(flags.maxRefused, '--max-refused');
  const rows = rowsOf(flags.rows);
  const { limits, plans, limitsName, finder } = candidate;
  const { retries, report } = flags;
  const format = formatOf(flags, finder);
  if (report !== undefined) refuseFolder(report);
  warnOfCosts(candidate);
  const { result, replay } = await withProgress((reading) =>
    runReplay({
      ...reading,
      ...format,
      sources,
      finder,
      limits,
      plans,
      retries,
      hasSeries: report !== undefined,
    }),
  );
  if (report !== undefined) {
    const logNames = sources.map(({ name }) => name);
    writeFileSync(report, reportHtml(reportData(result, replay, limitsName, logNames)));
  }
  if (flags.json) printJsonExactly(result);
  else printExactly(replayLines(result, rows));
  process.exitCode = exitCodeOf(result, mostRefused);
}

/** Refuses a report that could not be written, before a long log is read. */
function refuseFolder(report: string): void {
  const folder = dirname(report);
  if (!existsSync(folder)) throw new CommandError(`--report ${report}: there is no folder ${folder}.`);
  if (statSync(report, { throwIfNoEntry: false })?.isDirectory())
    throw new CommandError(`--report ${report} is a folder: name a file.`);
}

async function printSuggestion(
  sources: readonly LogSource[],
  candidate: Candidate,
  flags: ReplayFlags,
  aim: Aim,
): Promise<void> {
  const { readLine, isForeign } = formatOf(flags, candidate.finder);
  const read = await withProgress((reading) =>
    readDemand({ ...reading, readLine, sources }, candidate, flags.retries),
  );
  // The search does not yield: without a handler, Ctrl-C ends the process.
  const logNames = sources.map(({ name }) => name);
  const suggested = suggestedLimits(read, candidate, aim, { logNames, isForeign, isFile: !flags.json });
  if (flags.json) printJsonExactly(limitsJson(suggested));
  else printExactly(limitsYaml(suggested).replace(/\n$/, '').split('\n'));
  if (read.isPart) process.exitCode = INTERRUPTED;
}

/** Shows progress on a terminal. The first Ctrl-C ends the reading, a second one ends the process. */
async function withProgress<T>(
  run: (reading: { readonly onProgress: ProgressLine['show']; readonly signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const interrupted = new AbortController();
  const progress = new ProgressLine(standardError());
  const interrupt = () => {
    progress.clear();
    interrupted.abort();
  };
  process.once('SIGINT', interrupt);
  try {
    return await run({ onProgress: (state) => progress.show(state), signal: interrupted.signal });
  } finally {
    process.off('SIGINT', interrupt);
    progress.clear();
  }
}

function confidenceOf({ confidence: text, suggest }: ReplayFlags): number {
  if (text !== undefined && suggest === undefined) {
    throw new CommandError('--confidence is of suggested limits: add --suggest, such as --suggest 0.1%.');
  }
  const confidence = shareOf(text, '--confidence') ?? DEFAULT_CONFIDENCE;
  if (confidence < 1) return confidence;
  throw new CommandError(`--confidence takes less than 100%, not ${text}: no log shows every possible day.`);
}

/** `0.1%` or `0.001` as a share from 0 to 1. */
function shareOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const [, digits, percent] = /^(\d+(?:\.\d+)?)\s*(%?)$/.exec(text) ?? [];
  // Read as a decimal: 0.7 / 100 is less than 0.007.
  const share = Number(percent === '%' ? `${digits}e-2` : digits);
  if (share >= 0 && share <= 1) return share;
  throw new CommandError(`${option} takes a share such as 0.1% or 0.001, not ${text}.`);
}

function rowsOf(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new CommandError(`--rows takes a whole number, not ${text}.`);
  return Number(text);
}

function exitCodeOf(result: ReplayResult, mostRefused: number | undefined): number {
  const { complete, shareRefused, brokenFiles } = result;
  if (!complete) return INTERRUPTED;
  const unread = unreadProblem({ ...result, requests: result.requests + result.retries.dropped });
  if (unread !== undefined) {
    printError(unread);
    return UNREAD;
  }
  if (mostRefused !== undefined && brokenFiles.length > 0) {
    const names = brokenFiles.map(({ file }) => file).join(', ');
    printError(`--max-refused needs the whole log, and ${names} could not be read to the end.`);
    return UNREAD;
  }
  const problems = result.unmatched.map(unmatchedText);
  if (mostRefused !== undefined && shareRefused.after > mostRefused) {
    problems.push(
      `${shownShare(shareRefused.after)} of the requests are refused, more than --max-refused allows.`,
    );
  }
  printError(...problems);
  return problems.length === 0 ? 0 : FAILED;
}
