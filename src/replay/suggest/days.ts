import { US_PER_SECOND } from '../../domain/clock.ts';
import type { LimitRow } from '../../domain/limits/rows.ts';

const SECONDS_PER_DAY = 86_400;

/** A log of one day ends some time before midnight, so a last day counts even if up to this much of it is missing. */
const MISSING_US = 3_600 * US_PER_SECOND;

/** The days of a log, for one limit: spans of 24 hours from its first request, or of as many days as a longer window takes. */
export interface LogDays {
  readonly fromUs: number;
  readonly dayUs: number;
  /** Whole ones. The rest of the log belongs to no day. */
  readonly count: number;
}

export function daysOf(row: LimitRow, fromUs: number, toUs: number): LogDays {
  const dayUs = daysPerSpan(row) * SECONDS_PER_DAY * US_PER_SECOND;
  return { fromUs, dayUs, count: Math.floor((toUs - fromUs + MISSING_US) / dayUs) };
}

/** Days as long as the window, or longer: only requests near the boundary of two days then share a window. */
export function daysPerSpan({ windowSeconds }: LimitRow): number {
  return Math.max(1, Math.ceil(windowSeconds / SECONDS_PER_DAY));
}

/** Counts on how many days with requests a limit refused at most a share of them. Memory does not grow with the log. */
export class DayTally {
  /** Whole days of the log with requests. */
  days = 0;
  /** Those on which at most the share was refused. */
  kept = 0;
  readonly #log: LogDays;
  readonly #mostRefused: number;
  #day = 0;
  #requests = 0;
  #refused = 0;

  constructor(log: LogDays, mostRefused: number) {
    this.#log = log;
    this.#mostRefused = mostRefused;
  }

  /** Times must not decrease. */
  count(atUs: number, isRefused: boolean): void {
    const { fromUs, dayUs, count } = this.#log;
    const day = Math.floor((atUs - fromUs) / dayUs);
    if (day !== this.#day) {
      this.end();
      this.#day = day;
    }
    if (day >= count) return;
    this.#requests += 1;
    if (isRefused) this.#refused += 1;
  }

  end(): void {
    if (this.#requests > 0) {
      this.days += 1;
      if (this.#refused <= this.#requests * this.#mostRefused) this.kept += 1;
    }
    this.#requests = 0;
    this.#refused = 0;
  }
}

/**
 * On how many of the days a limit has to refuse at most the share, so that it also does on a further day with this confidence.
 *
 * If the days of the log and the further day are alike and independent of each other, the further day is equally likely to
 * have any rank among all of them by the limit that it needs. A limit that is enough for `kept` of `days` is then enough for
 * the further day with a probability of at least `kept / (days + 1)`, whatever the distribution of the requests. All days
 * have to be kept if there are too few for the confidence.
 */
export function daysToKeep(days: number, confidence: number): number {
  // A product such as 0.95 × 20 may be a little above the whole number.
  return Math.min(days, Math.ceil(confidence * (days + 1) - 1e-9));
}

/** The confidence that keeping so many days gives: less than the one asked for where there are too few, else that one or a little more. */
export function confidenceFrom(days: number, confidence: number): number {
  return daysToKeep(days, confidence) / (days + 1);
}

/** The number of days that a confidence takes. */
export function daysFor(confidence: number): number {
  return Math.ceil(confidence / (1 - confidence) - 1e-9);
}
