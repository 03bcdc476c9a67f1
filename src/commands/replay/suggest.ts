import { costliestByRow } from '../../config/checks/costs.ts';
import { isId } from '../../domain/caller.ts';
import { printable } from '../../domain/printable.ts';
import { counted, shownTime } from '../../domain/shown.ts';
import { CommandError } from '../../process/failure.ts';
import type { LineCounts } from '../../replay/input/line-counts.ts';
import { type ReadLogOptions, readLog } from '../../replay/input/read-log.ts';
import { brokenFiles, coverageNotes, leftOutNotes } from '../../replay/notes.ts';
import { replayedRows } from '../../replay/payers.ts';
import type { Retries } from '../../replay/replay.ts';
import { Demand } from '../../replay/suggest/demand.ts';
import { isForEachOwner, type LimitsText } from '../../replay/suggest/limits-yaml.ts';
import { type Aim, type Suggestion, suggestLimits } from '../../replay/suggest/search.ts';
import type { Candidate } from './candidate.ts';
import { unreadProblem } from './input.ts';

/** Characters of an id in a remark. */
const MOST_SHOWN = 80;

/** What a log asks of the limits. */
export interface ReadDemand {
  readonly demand: Demand;
  readonly tally: LineCounts;
  readonly retries: Retries;
  /** Whether the reading was interrupted. */
  readonly isPart: boolean;
}

export async function readDemand(
  log: ReadLogOptions,
  { limits }: Candidate,
  retries: Retries,
): Promise<ReadDemand> {
  const demand = new Demand(limits, retries);
  const tally = await readLog(log, (entry) => demand.take(entry));
  demand.end();
  const isPart = log.signal.aborted;
  if (!isPart) {
    const unread = unreadProblem({ ...tally, requests: demand.requests + demand.refusedInLog });
    if (unread !== undefined) throw new CommandError(...brokenFiles(tally), unread);
  }
  return { demand, tally, retries, isPart };
}

interface SuggestionForm {
  readonly logNames: readonly string[];
  readonly isForeign: boolean;
  readonly isFile: boolean;
}

/**
 * The smallest limits found that refuse at most a share of each bucket's requests, with what they are based on.
 *
 * @param form.logNames of the files that were read
 * @param form.isForeign whether the log is of another gateway
 * @param form.isFile whether the suggestion becomes a limits file, which has no limits for each principal, Person and address
 */
export function suggestedLimits(
  { demand, tally, retries, isPart }: ReadDemand,
  { limits: base, limitsName: baseName, operations = [] }: Candidate,
  { mostRefused, confidence }: Aim,
  { logNames, isForeign, isFile }: SuggestionForm,
): LimitsText {
  const costliest = costliestByRow(operations, base.rows);
  const whole = suggestLimits(demand, {
    isGiven: ({ row, id }) => (!isFile || isForEachOwner(row)) && (!isForeign || isId(id)),
    mostRefused,
    confidence,
    leastLimit: ({ name }) => costliest.get(name)?.cost ?? 1,
    onPass(searched) {
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${counted(searched, 'bucket')} left to search`);
    },
  });
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  demand.spool.close();
  const rows = replayedRows(base.rows);
  const { suggestion, remark } = isForeign ? withoutOtherIds(whole) : { suggestion: whole, remark: [] };
  const remarks = [
    `Suggested by weir replay from ${logNames.join(', ')}${periodText(demand)}.`,
    ...(isPart
      ? ['The reading was interrupted: these limits cover only the part of the log up to there.']
      : []),
    ...brokenFiles(tally),
    ...(tally.unreadable > 0 ? [`${counted(tally.unreadable, 'line')} could not be read.`] : []),
    ...refusalRemark(demand, retries),
    ...coverageNotes(demand, rows, 'these limits may be too low'),
    ...remark,
    ...tooLowRemark(suggestion),
    ...leftOutNotes(base.rows.filter((row) => !rows.includes(row))),
  ];
  const { requests } = demand;
  return { suggestion, base, baseName, mostRefused, confidence, requests, remarks };
}

function periodText({ fromUs, toUs, requests }: Demand): string {
  if (fromUs === undefined || toUs === undefined) return ', which has no charged request';
  const shown = (us: number) => shownTime(new Date(us / 1000).toISOString());
  return `: ${counted(requests, 'request')} from ${shown(fromUs)} to ${shown(toUs)} UTC`;
}

function refusalRemark({ refusedInLog }: Demand, retries: Retries): readonly string[] {
  if (refusedInLog === 0) return [];
  const treatment =
    retries === 'none'
      ? 'count as requests of their own, so the limits may be higher than clients need (--retries drop)'
      : 'are left out, as each is assumed to have been sent again later';
  return [`The ${counted(refusedInLog, 'request')} that the log shows as refused ${treatment}.`];
}

/** Leaves out owners that a limits file cannot name. */
function withoutOtherIds(whole: Suggestion): { readonly suggestion: Suggestion; readonly remark: string[] } {
  const limits = whole.limits.filter(({ stats }) => isId(stats.id));
  const others = new Set(whole.limits.map(({ stats }) => stats.id).filter((id) => !isId(id)));
  const [first] = others;
  const remark =
    first === undefined
      ? []
      : [
          `No limits for ${counted(others.size, 'owner')} that a limits file cannot name, such as ${shownId(first)}: ids there are printable ASCII without spaces, at most 256 characters.`,
        ];
  return { suggestion: { ...whole, limits }, remark };
}

function tooLowRemark({ limits }: Suggestion): readonly string[] {
  const tooLow = limits.filter(({ isTooLow }) => isTooLow);
  const [first] = tooLow;
  if (first === undefined) return [];
  const { name, id } = first.stats;
  return [
    `No valid limit is high enough for ${counted(tooLow.length, 'bucket')}, such as ${name} of ${shownId(id)}: the highest one is suggested, and refuses too much in the log or on too many of its days.`,
  ];
}

function shownId(id: string): string {
  return printable(JSON.stringify(id)).slice(0, MOST_SHOWN);
}
