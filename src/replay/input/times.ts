import { startOfDayMs } from '../../domain/limits/calendar.ts';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `20/Nov/2026:12:00:00 +0100`, as in the common and combined formats. */
const COMMON_TIME = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{2})(\d{2})$/;

/** The date and the hour of ISO 8601. `Date.parse` also finds a time in texts such as `request 5`. */
const ISO_START = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:/;

/** The year 2255. Later times would not be exact, and much later ones would be no dates. */
const LATEST_US = Number.MAX_SAFE_INTEGER;

/** Digits after the third of a fraction of a second. Date.parse ignores them. */
const MICROSECONDS = /\.\d{3}(\d{1,3})/;

/**
 * Unix time in microseconds of a time in a log: ISO 8601, the common format, or a Unix time as a number or text, in
 * seconds, milliseconds, microseconds or nanoseconds by its size. Undefined for anything else, and for times before 1970.
 */
export function timeUs(value: unknown): number | undefined {
  const us = anyTimeUs(value);
  return us !== undefined && isLogTime(us) ? us : undefined;
}

/** Whether a Unix time in microseconds can be of a log: after 1970, and exact as a number. */
export function isLogTime(us: number): boolean {
  return us > 0 && us <= LATEST_US;
}

/** The time of a charge: the time of its line less the duration of the request. The line's time if the duration cannot be right. */
export function startOf(loggedUs: number, durationUs: number): number {
  const startUs = loggedUs - Math.round(durationUs);
  return isLogTime(startUs) ? startUs : loggedUs;
}

function anyTimeUs(value: unknown): number | undefined {
  if (typeof value === 'number') return unixUs(value);
  if (typeof value !== 'string' || value === '') return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return unixUs(Number(value));
  const common = COMMON_TIME.exec(value);
  const iso = common === null ? value : isoOf(common);
  // Date.parse takes 30 February for 2 March.
  if (!ISO_START.test(iso) || startOfDayMs(iso.slice(0, 10)) === undefined) return undefined;
  const ms = Date.parse(iso);
  if (Number.isNaN(ms)) return undefined;
  const [, rest = ''] = MICROSECONDS.exec(value) ?? [];
  return ms * 1000 + Number(rest.padEnd(3, '0'));
}

/** Times in seconds are below this until the year 5138; times in milliseconds are above it after 1973. */
const MOST_SECONDS = 1e11;

function unixUs(time: number): number | undefined {
  if (!(time > 0)) return undefined;
  if (time < MOST_SECONDS) return Math.round(time * 1e6);
  if (time < MOST_SECONDS * 1e3) return Math.round(time * 1e3);
  return Math.round(time < MOST_SECONDS * 1e6 ? time : time / 1e3);
}

function isoOf([, day, month = '', year, clock, hours, minutes]: RegExpExecArray): string {
  return `${year}-${String(MONTHS.indexOf(month) + 1).padStart(2, '0')}-${day}T${clock}${hours}:${minutes}`;
}
