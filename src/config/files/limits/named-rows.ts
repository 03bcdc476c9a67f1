import type { Static } from 'typebox';
import { parseDuration } from '../../../domain/duration.ts';
import { PERIOD_SECONDS, type PeriodRule, WEEKDAYS } from '../../../domain/limits/calendar.ts';
import {
  CONTRACT_ROWS,
  contractRows,
  furtherRows,
  isRecorded,
  type LimitRow,
  LONGEST_WINDOW_SECONDS,
  MAX_PERIOD_LIMIT,
  MAX_WINDOW_LIMIT,
} from '../../../domain/limits/rows.ts';
import { isScopeName } from '../../../domain/limits/scopes.ts';
import { isTimeZone, timeZones } from '../../../domain/limits/time-zone.ts';
import type { Advice } from '../../problem.ts';
import type { Finding } from '../../reader/schema-check.ts';
import { isMapping } from '../../reader/schema-node.ts';
import { didYouMean } from '../../reader/value-messages.ts';
import { type limitsSchemaOf, type NamedRow, ROW_NAME } from './limits-schema.ts';

export type LimitsContent = Static<ReturnType<typeof limitsSchemaOf>>;
type FurtherLimit = LimitsContent['limits'][string];

/** The names under `limits` of a limits file that has not been checked yet. */
export function namedRows(value: unknown): readonly NamedRow[] {
  const further = isMapping(value) && isMapping(value.limits) ? value.limits : {};
  return Object.entries(further)
    .filter(([name]) => !isTaken(name))
    .map(([name, entry]) => {
      const per = isMapping(entry) ? `${entry.per}` : '';
      const isPeriodic = isMapping(entry) && entry.period !== undefined;
      return { name, scope: isScopeName(per) ? per : undefined, ...choicesOf(isPeriodic) };
    });
}

/** What an overrides file may refer to. */
export function namedRowsOf(rows: readonly LimitRow[]): readonly NamedRow[] {
  return furtherRows(rows).map(({ name, scope, period }) => ({
    name,
    scope,
    ...choicesOf(period !== undefined),
  }));
}

function choicesOf(isPeriodic: boolean) {
  return { mayBeNone: true, most: isPeriodic ? MAX_PERIOD_LIMIT : MAX_WINDOW_LIMIT };
}

/** All rows of a limits file: the contract's first. */
export function rowsOf({ windowSeconds, limits }: LimitsContent, findings: Finding[]): readonly LimitRow[] {
  return [...contractRows(windowSeconds), ...furtherRowsOf(limits, findings)];
}

/** The rows of a file's further limits. */
export function furtherRowsOf(limits: LimitsContent['limits'], findings: Finding[]): readonly LimitRow[] {
  const further = Object.entries(limits).map(([name, entry]) => {
    const path = ['limits', name];
    const problem = nameProblem(name);
    if (problem !== undefined) findings.push({ path, ...problem });
    return rowOf(name, entry, path, findings);
  });
  if (further.length > MOST_ROWS) {
    const message = `has ${further.length} limits, and at most ${MOST_ROWS} are allowed`;
    findings.push({ path: ['limits'], message });
  }
  return further;
}

/** Each operation is compared with each of them at every reload. */
const MOST_ROWS = 500;

function rowOf(name: string, entry: FurtherLimit, path: readonly string[], findings: Finding[]): LimitRow {
  const { per, kind, operations, tags } = entry;
  const given = COUNTED.filter((name) => entry[name] !== undefined);
  const [counts = 'points'] = given;
  if (given.length !== 1) {
    const message = given.length === 0 ? 'has no limit' : `has ${given.length} limits`;
    findings.push({ path, message, hint: 'name one of points, requests and concurrent' });
  }
  const amount = entry[counts];
  if (entry.period === undefined && typeof amount === 'number' && amount > MAX_WINDOW_LIMIT) {
    const hint = 'only limits with a period go beyond it';
    findings.push({
      path: [...path, counts],
      message: `must be at most ${MAX_WINDOW_LIMIT}, is ${amount}`,
      hint,
    });
  }
  const row: LimitRow = {
    name,
    headerName: name,
    scope: per,
    counts,
    windowSeconds: windowOf(entry, counts, path, findings),
    ...periodOf(entry, path, findings),
    ...(entry.durable === undefined ? {} : { durable: entry.durable }),
    selection: {
      ...(kind === undefined ? {} : { kind }),
      ...(operations === undefined ? {} : { operations }),
      ...(tags === undefined ? {} : { tags }),
    },
    isContract: false,
  };
  if (entry.durable === true && !isRecorded(row)) {
    const hint = 'only limits with a period, or with a window of an hour or longer, are recorded';
    findings.push({ path: [...path, 'durable'], message: 'is not allowed here', hint });
  }
  return row;
}

const COUNTED = ['points', 'requests', 'concurrent'] as const;

/** 0 for concurrent requests, and for periods. */
function windowOf(
  { window, period }: FurtherLimit,
  counts: LimitRow['counts'],
  row: readonly string[],
  findings: Finding[],
): number {
  const path = [...row, 'window'];
  // The schema has checked the text.
  const windowSeconds = (window === undefined ? 0 : parseDuration(window)) ?? 0;
  if (windowSeconds > LONGEST_WINDOW_SECONDS)
    findings.push({
      path,
      message: `must be at most 31d, is "${window}"`,
      hint: 'such as period: month or period: year',
    });
  const given = window === undefined ? 'period' : 'window';
  if (counts === 'concurrent') {
    if (window === undefined && period === undefined) return 0;
    const hint = `a limit on concurrent requests has no ${given}: leave it out`;
    findings.push({ path: [...row, given], message: 'is not allowed here', hint });
  } else if (window === undefined && period === undefined) {
    findings.push({ path: row, message: 'has no window', hint: 'such as window: 1m, or period: month' });
  } else if (window !== undefined && period !== undefined) {
    const hint = `keep window: ${window} or period: ${period}`;
    findings.push({ path, message: 'is not allowed beside a period', hint });
  }
  return windowSeconds;
}

/** The period of a row, with what the file leaves out, and the length of a long one. */
function periodOf(
  { period: unit, timeZone, startsOn }: FurtherLimit,
  row: readonly string[],
  findings: Finding[],
): { readonly period?: PeriodRule; readonly windowSeconds?: number } {
  if (unit === undefined) {
    for (const [name, value] of Object.entries({ timeZone, startsOn })) {
      const hint = 'only limits with a period have it';
      if (value !== undefined) findings.push({ path: [...row, name], message: 'is not allowed here', hint });
    }
    return {};
  }
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    const hint = didYouMean(timeZone, timeZones()) ?? 'such as Europe/Berlin';
    findings.push({ path: [...row, 'timeZone'], message: `there is no time zone "${timeZone}"`, hint });
    return {};
  }
  const start = startOf(unit, startsOn);
  if (start === undefined) {
    findings.push({
      path: [...row, 'startsOn'],
      message: `is not allowed with period: ${unit}`,
      hint: STARTS[unit],
    });
  }
  const period = { unit, timeZone: timeZone ?? 'UTC', startsOn: start ?? 1 };
  return { period, windowSeconds: PERIOD_SECONDS[unit] };
}

const NO_START = 'leave it out, because only weeks and months can begin elsewhere';
const STARTS = {
  hour: NO_START,
  day: NO_START,
  week: `name a weekday, such as ${WEEKDAYS[0]}`,
  month: 'name a day from 1 to 31',
  year: NO_START,
} satisfies Record<PeriodRule['unit'], string>;

/** The start as a rule has it; undefined if such a period cannot have this one. */
function startOf(unit: PeriodRule['unit'], startsOn: FurtherLimit['startsOn']): number | undefined {
  if (startsOn === undefined) return 1;
  if (typeof startsOn === 'number') return unit === 'month' ? startsOn : undefined;
  return unit === 'week' ? WEEKDAYS.indexOf(startsOn) + 1 : undefined;
}

const MAX_NAME_LENGTH = 40;

/** Words with another meaning where limits are named: in an override, and in a request for a live limit. */
const RESERVED: ReadonlySet<string> = new Set([
  'until',
  'plan',
  'for',
  'why',
  'by',
  'force',
  'bucket',
  'blocked',
  'none',
]);

function isTaken(name: string): boolean {
  return CONTRACT_ROWS.some((row) => row.name === name) || RESERVED.has(name);
}

function nameProblem(name: string): Advice | undefined {
  if (isTaken(name)) return { message: 'this name is taken', hint: 'give the limit another name' };
  // The store keeps the count of a shadow limit under the name with this ending.
  if (name.endsWith('-shadow')) return { message: 'a name must not end in -shadow' };
  if (new RegExp(ROW_NAME).test(name) && name.length <= MAX_NAME_LENGTH) return undefined;
  return {
    message: `a name has at most ${MAX_NAME_LENGTH} lower-case letters, digits and single hyphens, and begins with a letter`,
    hint: 'such as account-minute',
  };
}
