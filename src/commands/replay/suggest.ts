import { costliestByRow } from '../../config/checks/costs.ts';
import { counted, shownTime } from '../../domain/shown.ts';
import { CommandError } from '../../process/failure.ts';
import { type ReadLogOptions, readLog } from '../../replay/input/read-log.ts';
import { coverageNotes, leftOutNotes } from '../../replay/notes.ts';
import { replayedRows } from '../../replay/payers.ts';
import type { Retries } from '../../replay/replay.ts';
import { Demand } from '../../replay/suggest/demand.ts';
import type { LimitsText } from '../../replay/suggest/limits-yaml.ts';
import { type Aim, suggestLimits } from '../../replay/suggest/search.ts';
import type { Candidate } from './candidate.ts';
import { unreadProblem } from './input.ts';

/** Reads a log, and returns the smallest limits found that refuse at most a share of each bucket's requests, with what they are based on. */
export async function suggestedLimits(
  log: ReadLogOptions,
  { limits: base, limitsName: baseName, operations = [] }: Candidate,
  retries: Retries,
  { mostRefused, confidence }: Aim,
): Promise<LimitsText> {
  const { sources, signal } = log;
  const demand = new Demand(base, retries);
  const tally = await readLog(log, (entry) => demand.take(entry));
  demand.end();
  if (!signal.aborted) {
    const unread = unreadProblem({ ...tally, requests: demand.requests + demand.refusedInLog });
    if (unread !== undefined) throw new CommandError(unread);
  }
  const costliest = costliestByRow(operations, base.rows);
  const suggestion = suggestLimits(demand, {
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
  const remarks = [
    `Suggested by weir replay from ${sources.map(({ name }) => name).join(', ')}${periodText(demand)}.`,
    ...(signal.aborted
      ? ['The reading was interrupted: these limits cover only the part of the log up to there.']
      : []),
    ...(tally.unreadable > 0 ? [`${counted(tally.unreadable, 'line')} could not be read.`] : []),
    ...refusalRemark(demand, retries),
    ...coverageNotes(demand, rows, 'these limits may be too low'),
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
