/** Days of a time zone. Everything about zones comes from `Intl`, so the runtime's data decide which zones exist and what they did. */

export const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;

/**
 * PostgreSQL reads other names in its own way: `CET` as a zone without summer time, `IST` as Israel's, and the sign of an offset such as
 * `+02:00` the other way round.
 */
const NAME = /^(?:UTC|GMT|[a-z][^/]*\/.+)$/i;

/** Whether a zone has this name, for the runtime and for PostgreSQL alike: `Europe/Berlin`, `UTC`. */
export function isTimeZone(name: string): boolean {
  if (!NAME.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

/** The names of the runtime's zones, for suggestions. */
export function timeZones(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')];
}

export class TimeZone {
  readonly #format: Intl.DateTimeFormat;

  constructor(name: string) {
    this.#format = new Intl.DateTimeFormat('en-u-ca-iso8601-nu-latn', {
      timeZone: name,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** The day that clocks show at this Unix time, in days since 1970. */
  dayAt(unixMs: number): number {
    return Math.floor(this.#wallMs(unixMs) / DAY_MS);
  }

  /**
   * The Unix time in ms at which a day begins: the first time at which clocks show its midnight. Where they never do, because they are
   * set forward over it, the moment at which they are. A day that a zone left out begins, and ends, with the next one.
   */
  startOf(day: number): number {
    const wallMs = day * DAY_MS;
    // Clocks differ from UTC by less than a day.
    const starts = [wallMs - DAY_MS, wallMs + DAY_MS]
      .map((nearMs) => wallMs - this.#offsetMs(nearMs))
      .sort((a, b) => a - b);
    const [first = wallMs, last = wallMs] = starts;
    return starts.find((ms) => this.#wallMs(ms) === wallMs) ?? this.#firstAt(wallMs, first, last);
  }

  /** Between these two times, clocks are set forward to this one or beyond it. */
  #firstAt(wallMs: number, beforeMs: number, afterMs: number): number {
    let [before, after] = [Math.floor(beforeMs / SECOND_MS), Math.ceil(afterMs / SECOND_MS)];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.#wallMs(middle * SECOND_MS) < wallMs) before = middle;
      else after = middle;
    }
    return after * SECOND_MS;
  }

  #offsetMs(unixMs: number): number {
    return this.#wallMs(unixMs) - unixMs;
  }

  /** What clocks show, as if it were UTC. */
  #wallMs(unixMs: number): number {
    const shown: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of this.#format.formatToParts(unixMs)) shown[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
    const fractionMs = unixMs - Math.floor(unixMs / SECOND_MS) * SECOND_MS;
    return Date.UTC(year, month - 1, day, hour, minute, second) + fractionMs;
  }
}
