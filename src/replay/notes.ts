import { US_PER_SECOND } from '../domain/clock.ts';
import { type Calendar, calendarOf } from '../domain/limits/calendar.ts';
import { furtherRows, type LimitRow } from '../domain/limits/rows.ts';
import { printable } from '../domain/printable.ts';
import { counted, shownCount } from '../domain/shown.ts';
import type { OperationFinder } from './input/entry.ts';
import type { LineCounts } from './input/line-counts.ts';
import { MOST_TRIES, type Replay, type Retries } from './replay.ts';
import { type GivenPlan, unmatchedOverrides } from './unmatched.ts';

export interface Circumstances {
  readonly replay: Replay;
  readonly plans: readonly GivenPlan[];
  readonly lineCounts: LineCounts;
  readonly retries: Retries;
  readonly complete: boolean;
  /** Present if requests got another cost. */
  readonly finder: OperationFinder | undefined;
  /** Whether the lines of the log have a cost. */
  readonly hasLoggedCosts: boolean;
}

/** The limitations of a replay's numbers, as sentences. Most important first. */
export function notesOn(circumstances: Circumstances): readonly string[] {
  return [
    completeness(circumstances),
    ...brokenFiles(circumstances.lineCounts),
    retriesNote(circumstances),
    anonymousNote(circumstances.lineCounts),
    repeatedNote(circumstances),
    uncountedNote(circumstances.lineCounts),
    clocksNote(circumstances.lineCounts),
    latenessNote(circumstances.replay),
    resolutionNote(circumstances),
    costNote(circumstances),
    plansNote(circumstances.replay),
    ...coverageNotes(
      circumstances.replay,
      circumstances.replay.limits.rows,
      'the replay may refuse too little',
    ),
    ...leftOutNotes(circumstances.replay.leftOut),
    elsewhereNote(circumstances.replay),
    selectionNote(circumstances),
    neverFitsNote(circumstances.replay),
    overridesNote(circumstances),
  ].filter((note) => note !== undefined);
}

function completeness({ complete }: Circumstances): string | undefined {
  return complete
    ? undefined
    : 'The reading was interrupted: these numbers cover only the part of the log up to there.';
}

/** Files that ended early. */
export function brokenFiles({ brokenFiles: files }: LineCounts): readonly string[] {
  return files.map(({ file, problem }) => `${file} could not be read to its end (${printable(problem)}).`);
}

function retriesNote({ replay, retries }: Circumstances): string | undefined {
  const { refused, dropped, gaveUp } = replay;
  if (retries === 'drop') {
    return `The ${counted(dropped, 'request')} that the log shows as refused were left out, on the assumption that each was sent again and appears later (--retries drop).`;
  }
  if (retries === 'after') {
    return (
      `The ${counted(dropped, 'request')} that the log shows as refused were left out. What the replay refused was sent again after its Retry-After: ` +
      `${counted(replay.retries, 'retry').replace(/retrys$/, 'retries')}, and ${counted(gaveUp, 'request')} given up after ${MOST_TRIES} tries (--retries after).`
    );
  }
  if (refused.before === 0) return undefined;
  return (
    `The log has ${counted(refused.before, 'refused request')}. Refused clients usually retry, so it shows more requests than clients wanted to send. ` +
    'Each line counted as a request of its own; --retries drop leaves the refused ones out.'
  );
}

function anonymousNote({ anonymous }: LineCounts): string | undefined {
  if (anonymous === 0) return undefined;
  return `${counted(anonymous, 'request')} without an Account were left out.`;
}

/** A lower share occurs in logs of whole milliseconds by chance. */
const LEAST_REPEATED_SHARE = 0.02;

function repeatedNote({ lineCounts, replay }: Circumstances): string | undefined {
  const { repeated, hasFractions } = lineCounts;
  const read = replay.requests + replay.dropped;
  if (!hasFractions || repeated === 0 || repeated < read * LEAST_REPEATED_SHARE) return undefined;
  return (
    `${counted(repeated, 'request')} occur twice, with the same times, payer and cost, and were counted twice. ` +
    'Was a file, or a copy of it, given twice?'
  );
}

function uncountedNote({ uncounted }: LineCounts): string | undefined {
  if (uncounted === 0) return undefined;
  return `${counted(uncounted, 'request')} ${uncounted === 1 ? 'was' : 'were'} served uncounted while the store did not answer. The replay counts them, so it may refuse what the gateway served.`;
}

function clocksNote({ haveFilesOverlapped }: LineCounts): string | undefined {
  if (!haveFilesOverlapped) return undefined;
  return 'Several files are of the same time. Each gateway logs by its own clock: where clocks differ, requests are counted in another order, and in other windows, than the store counted them.';
}

function latenessNote({ late, requests }: Replay): string | undefined {
  if (late === 0) return undefined;
  const mostly = late * 100 > requests ? ' If the log is not in the order of time, sort it first.' : '';
  return `${counted(late, 'request')} were logged more than 10 s after their charge and were counted late.${mostly}`;
}

function resolutionNote({ lineCounts, replay }: Circumstances): string | undefined {
  if (lineCounts.hasFractions || replay.requests === 0) return undefined;
  return 'The times of this log are whole seconds: requests of one second count as simultaneous, so short bursts look fuller than they were.';
}

function costNote({ replay, finder, hasLoggedCosts }: Circumstances): string | undefined {
  if (finder !== undefined || hasLoggedCosts || replay.hasOtherCosts) return undefined;
  return 'Each request costs 1 point: name an OpenAPI document with --operations, or settings with --config, for other costs.';
}

/** A log has the plan that was in force, whether a file had assigned it or a token had named it. */
function plansNote({ withLoggedPlan }: Replay): string | undefined {
  const [first] = withLoggedPlan;
  if (first === undefined) return undefined;
  return (
    `These limits assign no plan to ${counted(withLoggedPlan.size, 'Account')} whose plan the log names, such as ${printable(first)}, so the replay counts with that plan. ` +
    'A log does not show whether a token, the directory or a file had named it: if a file had, these limits take it away, and the replay does not show the effect.'
  );
}

const US_PER_MS = 1_000;

/**
 * What a log cannot show of long limits: one that is shorter than a window shows only how the window begins to fill, and one rarely begins
 * where a period does.
 */
export function coverageNotes(
  { fromUs, toUs }: Pick<Replay, 'fromUs' | 'toUs'>,
  rows: readonly LimitRow[],
  consequence: string,
): readonly string[] {
  if (fromUs === undefined || toUs === undefined) return [];
  const seconds = (toUs - fromUs) / US_PER_SECOND;
  const longer = rows
    .filter(({ windowSeconds, period }) => period === undefined && windowSeconds > seconds)
    .map(({ name }) => name);
  const partial = rows
    .filter(
      ({ period }) =>
        period !== undefined && !hasWholePeriod(calendarOf(period), fromUs / US_PER_MS, toUs / US_PER_MS),
    )
    .map(({ name }) => name);
  return [
    ...(longer.length > 0 && seconds >= 1
      ? [
          `The log is shorter than the window of ${longer.join(', ')}: a longer log can fill it further, so ${consequence}.`,
        ]
      : []),
    ...(partial.length > 0
      ? [
          `The log has no whole period of ${partial.join(', ')}: what was used before it began and would be used after it ended is unknown, so ${consequence}.`,
        ]
      : []),
  ];
}

function hasWholePeriod(calendar: Calendar, fromMs: number, toMs: number): boolean {
  const { startMs, endMs, nextEndMs } = calendar.at(fromMs);
  return startMs >= fromMs - US_PER_MS ? toMs >= endMs : toMs >= nextEndMs;
}

/** What a log cannot show of the limits that are not counted. */
export function leftOutNotes(rows: readonly LimitRow[]): readonly string[] {
  const names = (chosen: readonly LimitRow[]) => chosen.map(({ name }) => name).join(', ');
  const running = rows.filter(({ counts }) => counts === 'concurrent');
  const others = rows.filter(({ counts }) => counts !== 'concurrent');
  return [
    ...(running.length > 0
      ? [`Left out: ${names(running)}. A log does not show what ran at the same time.`]
      : []),
    ...(others.length > 0
      ? [`Left out: ${names(others)}. A log does not show which principals are ServiceAccounts.`]
      : []),
  ];
}

function elsewhereNote({ refusedElsewhere, dropped }: Replay): string | undefined {
  if (refusedElsewhere.size === 0) return undefined;
  const refused = [...refusedElsewhere].map(
    ([bucket, count]) => `${printable(bucket)} (${shownCount(count)})`,
  );
  const effect = dropped > 0 ? '' : ' Here they are requests like any other, and may be admitted.';
  return `The log has refusals by what is not replayed: ${refused.join(', ')}.${effect}`;
}

function selectionNote({ replay, finder }: Circumstances): string | undefined {
  if (finder !== undefined) return undefined;
  const unclear = furtherRows(replay.limits.rows).filter(({ selection }) => {
    return selection.operations !== undefined || selection.tags !== undefined;
  });
  if (unclear.length === 0) return undefined;
  const names = unclear.map(({ name }) => name).join(', ');
  return `Which requests ${names} counts was found by the names of operations in the log: name an OpenAPI document with --operations, or settings with --config, for tags and paths.`;
}

function overridesNote({ replay, plans }: Circumstances): string | undefined {
  return replay.requests === 0 ? undefined : unmatchedOverrides(replay.limits, plans, replay.buckets);
}

function neverFitsNote({ neverFits }: Replay): string | undefined {
  if (neverFits === 0) return undefined;
  return `${shownCount(neverFits)} of the refusals are of requests that need room for more than the bucket's limit. The gateway does not load a limit below the cost of an operation.`;
}
