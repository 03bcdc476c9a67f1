/** Periods of the calendar in which limits count: an hour, a day, a week, a month or a year of a time zone. */

import { DAY_MS, TimeZone } from './time-zone.ts';

export const PERIOD_UNITS = ['hour', 'day', 'week', 'month', 'year'] as const;

/** The first is the one on which weeks begin where nothing else is said. */
export const WEEKDAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const;

/** The last day of a month on which a month can begin. */
export const LAST_DAY = 31;

/** Which periods. Plain data, which can be sent to a thread. */
export interface PeriodRule {
  readonly unit: (typeof PERIOD_UNITS)[number];
  /** A name of IANA's that the runtime knows. */
  readonly timeZone: string;
  /** A month begins on this day from 1 to 31, or on its last day if it has fewer. A week begins on this weekday: Monday is 1. */
  readonly startsOn: number;
}

/** How long a period of each unit lasts at most, unless clocks are set. */
export const PERIOD_SECONDS: Readonly<Record<PeriodRule['unit'], number>> = {
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 31 * 86_400,
  year: 366 * 86_400,
};

/** A rule as files have it. */
export function shownRule({ unit, timeZone, startsOn }: PeriodRule) {
  const start = unit === 'week' ? WEEKDAYS[startsOn - 1] : unit === 'month' ? startsOn : undefined;
  return { unit, timeZone, ...(start !== undefined && { startsOn: start }) };
}

/** A period, and where the next one ends. In Unix ms; the ends are exclusive. */
export interface Span {
  readonly startMs: number;
  readonly endMs: number;
  readonly nextEndMs: number;
}

/** A period of the calendar is never longer, whatever a zone did with its clocks. */
export const LONGEST_PERIOD_SECONDS = 368 * 86_400;

const NO_SPAN: Span = { startMs: 0, endMs: 0, nextEndMs: 0 };
const HOUR_MS = 3_600_000;
/** Less than the shortest period: half an hour, where clocks are set by that. */
export const LEEWAY_MS = 20 * 60_000;
/** 1970 began on a Thursday. */
const FIRST_MONDAY = 4;
const WEEK_DAYS = 7;
const YEAR_MONTHS = 12;

/** The periods of one rule. There is one object for each rule: compare them by identity. */
export class Calendar {
  readonly rule: PeriodRule;
  readonly #zone: TimeZone;
  #shown: Intl.DateTimeFormat | undefined;
  /** Two, for the present and for a store. */
  #last = NO_SPAN;
  #other = NO_SPAN;

  constructor(rule: PeriodRule) {
    this.rule = rule;
    this.#zone = new TimeZone(rule.timeZone);
  }

  /** The period with this Unix time. The same object is returned for as long as the period is the same. */
  at(unixMs: number): Span {
    const last = this.#last;
    const other = this.#other;
    if (unixMs >= last.startMs && unixMs < last.endMs) return last;
    if (unixMs >= other.startMs && unixMs < other.endMs) return other;
    this.#other = last;
    this.#last = this.rule.unit === 'hour' ? this.#hourAt(unixMs) : this.#spanAt(unixMs);
    return this.#last;
  }

  /**
   * A pair of periods for a store whose clock shows about this time: the one with its time is among them, even if its clock is some minutes
   * behind or nearly a period ahead.
   */
  around(unixMs: number): Span {
    return this.at(unixMs - LEEWAY_MS);
  }

  /** A time by the clocks of the calendar: `15 December 2026, 00:00 (Europe/Berlin)`. */
  shown(unixMs: number): string {
    const { timeZone } = this.rule;
    this.#shown ??= new Intl.DateTimeFormat('en-GB', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'long',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
    });
    const part: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {};
    for (const { type, value } of this.#shown.formatToParts(unixMs)) part[type] = value;
    const { day, month, year, hour, minute } = part;
    return `${day} ${month} ${year}, ${hour}:${minute} (${timeZone})`;
  }

  #spanAt(unixMs: number): Span {
    let number = this.#numberOf(this.#zone.dayAt(unixMs));
    // Clocks that are set back over midnight show the day before once more.
    while (this.#startOf(number + 1) <= unixMs) number += 1;
    while (this.#startOf(number) > unixMs) number -= 1;
    const endMs = this.#startOf(number + 1);
    let next = number + 2;
    // A zone may leave out a day.
    while (this.#startOf(next) <= endMs) next += 1;
    return { startMs: this.#startOf(number), endMs, nextEndMs: this.#startOf(next) };
  }

  /** Hours count from midnight. If clocks are set by half an hour, the last hour of that day is cut off. */
  #hourAt(unixMs: number): Span {
    const day = this.#spanAt(unixMs);
    const startMs = unixMs - ((unixMs - day.startMs) % HOUR_MS);
    const endMs = Math.min(startMs + HOUR_MS, day.endMs);
    const nextEndMs = endMs < day.endMs ? Math.min(endMs + HOUR_MS, day.endMs) : endMs + HOUR_MS;
    return { startMs, endMs, nextEndMs };
  }

  #startOf(number: number): number {
    return this.#zone.startOf(this.#firstDayOf(number));
  }

  /** Periods are numbered; the day is one of days since 1970. */
  #numberOf(day: number): number {
    const { unit, startsOn } = this.rule;
    if (unit === 'week') return Math.floor((day - FIRST_MONDAY - (startsOn - 1)) / WEEK_DAYS);
    const date = new Date(day * DAY_MS);
    if (unit === 'year') return date.getUTCFullYear();
    if (unit !== 'month') return day;
    const month = date.getUTCFullYear() * YEAR_MONTHS + date.getUTCMonth();
    return day >= this.#firstDayOf(month) ? month : month - 1;
  }

  #firstDayOf(number: number): number {
    const { unit, startsOn } = this.rule;
    if (unit === 'week') return number * WEEK_DAYS + FIRST_MONDAY + startsOn - 1;
    if (unit === 'year') return Date.UTC(number, 0) / DAY_MS;
    if (unit !== 'month') return number;
    const [year, month] = [Math.floor(number / YEAR_MONTHS), number % YEAR_MONTHS];
    const nextDay = Date.UTC(year, month + 1) / DAY_MS;
    return Math.min(Date.UTC(year, month) / DAY_MS + startsOn, nextDay) - 1;
  }
}

const calendars = new Map<string, Calendar>();

/** Two rules have one text if they are the same. */
export function ruleText({ unit, startsOn, timeZone }: PeriodRule): string {
  return `${unit} ${startsOn} ${timeZone}`;
}

/** The one calendar of a rule. */
export function calendarOf(rule: PeriodRule): Calendar {
  const name = ruleText(rule);
  let calendar = calendars.get(name);
  if (calendar === undefined) {
    calendar = new Calendar(rule);
    calendars.set(name, calendar);
  }
  return calendar;
}

/** When a day such as `2026-11-28` begins in UTC, in Unix ms. Undefined for a day that does not exist, such as 30 February. */
export function startOfDayMs(day: string): number | undefined {
  const startMs = Date.parse(`${day}T00:00:00Z`);
  const exists = !Number.isNaN(startMs) && new Date(startMs).toISOString().slice(0, 10) === day;
  return exists ? startMs : undefined;
}
