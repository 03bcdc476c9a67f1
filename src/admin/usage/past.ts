import { calendarOf, LAST_DAY, type PeriodRule } from '../../domain/limits/calendar.ts';
import { DAY_MS, isTimeZone, TimeZone } from '../../domain/limits/time-zone.ts';

/** A past period as it is asked for. */
export interface PastQuery {
  /** `2026`, `2026-11` or `2026-11-25`. */
  readonly period: string;
  /** An IANA name. Default: UTC. */
  readonly timeZone?: string | undefined;
  /** The day on which months begin. Default: 1. */
  readonly startsOn?: string | undefined;
}

/** Returns a period with its bounds, or what is wrong with the query. */
export function pastOf({ period, timeZone = 'UTC', startsOn = '1' }: PastQuery) {
  const parsed = parse(period);
  if (parsed === undefined)
    return 'period takes a year, a month or a day, such as 2026, 2026-11 or 2026-11-25.';
  if (!isTimeZone(timeZone)) return 'timeZone takes the name of a time zone, such as Europe/Berlin.';
  const first = Number(startsOn);
  if (!Number.isInteger(first) || first < 1 || first > LAST_DAY)
    return `startsOn takes the day of the month on which the month begins, from 1 to ${LAST_DAY}.`;
  const { unit, day } = parsed;
  if (first !== 1 && unit !== 'month') return 'startsOn only belongs to a month.';
  const startMs = new TimeZone(timeZone).startOf(unit === 'month' ? dayOfMonth(day, first) : day);
  const { endMs } = calendarOf({ unit, timeZone, startsOn: first }).at(startMs);
  return { period, timeZone, startsOn: first, from: new Date(startMs), to: new Date(endMs) };
}

const PERIOD = /^([1-9]\d{3})(?:-(\d\d)(?:-(\d\d))?)?$/;

/** The kind of a period, and its first day in days since 1970; undefined if there is no such period. */
function parse(period: string): { readonly unit: PeriodRule['unit']; readonly day: number } | undefined {
  const [, year, month, day] = PERIOD.exec(period) ?? [];
  if (year === undefined) return undefined;
  const date = new Date(`${year}-${month ?? '01'}-${day ?? '01'}T00:00:00Z`);
  // Date reads a day that does not exist, such as 2026-02-30, as a later one.
  if (Number.isNaN(date.getTime()) || !date.toISOString().startsWith(period)) return undefined;
  const unit = day !== undefined ? 'day' : month !== undefined ? 'month' : 'year';
  return { unit, day: date.getTime() / DAY_MS };
}

/** This day of the month that begins with `firstDay`, or its last one. */
function dayOfMonth(firstDay: number, day: number): number {
  const first = new Date(firstDay * DAY_MS);
  const next = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1) / DAY_MS;
  return Math.min(firstDay + day, next) - 1;
}
