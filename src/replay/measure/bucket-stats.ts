import { type Calendar, calendarOf } from '../../domain/limits/calendar.ts';
import type { LimitRow } from '../../domain/limits/rows.ts';
import { costIn, windowUsOf } from '../../store/store.ts';
import { DemandWindow } from './demand-window.ts';
import { Histogram } from './points-histogram.ts';
import { Series } from './series.ts';

const US_PER_MS = 1_000;
const HOUR_US = 3_600_000_000;

/** An hour of one bucket; `startUs` is Unix time. */
interface Hour {
  readonly startUs: number;
  requests: number;
  points: number;
  refused: number;
}

/** Enough for a chart. They are held for every bucket. */
const BINS = 96;

/** Requests over time, whether of one bucket or of all: in the log, and charged, retries included. */
export const REQUEST_COLUMNS = {
  logged: 'sum',
  asked: 'sum',
  refusedBefore: 'sum',
  refusedAfter: 'sum',
} as const;

/** One bucket over time: the fullest window of each bin, and requests. */
const COLUMNS = { fullest: 'max', ...REQUEST_COLUMNS } as const;

/** The statistics of one bucket in a replay. */
export class BucketStats {
  readonly row: LimitRow;
  /** The Account, Organization, principal or address that owns the bucket. */
  readonly id: string;
  /** The replayed limit, in points per window. Undefined if there is none. */
  limit: number | undefined;
  /** A limit in shadow mode counts, but refuses nothing. */
  shadowLimit: number | undefined;
  /** Whether a limit has applied to a request of the log, also if none does any more. */
  hasHadLimit = false;
  /** Requests of the log, including those that an assumption about retries leaves out. */
  logged = 0;
  /** Requests charged, retries included. */
  requests = 0;
  points = 0;
  /** Refused by this bucket according to the log. */
  refusedBefore = 0;
  /** Refused by this bucket in the replay. */
  refusedAfter = 0;
  /** Requests that spend from this bucket and were refused by the other one. */
  refusedByOther = { before: 0, after: 0 };
  shadowRefused = 0;
  /** Number of ended windows by the points requested in them. Empty windows are left out. */
  readonly windows = new Histogram();
  readonly series: Series<keyof typeof COLUMNS> | undefined;
  readonly #windowUs: number;
  /** Undefined where windows slide. */
  readonly #calendar: Calendar | undefined;
  #fullestPeriod = 0;
  readonly #demand = new DemandWindow();
  #window = Number.NaN;
  #windowPoints = 0;
  #hour: Hour | undefined;
  #worst: Hour | undefined;

  constructor(row: LimitRow, id: string, hasSeries: boolean) {
    this.row = row;
    this.id = id;
    this.#windowUs = windowUsOf(row);
    this.#calendar = row.period && calendarOf(row.period);
    this.series = hasSeries ? new Series(COLUMNS, this.#windowUs, BINS) : undefined;
  }

  get name(): string {
    return this.row.name;
  }

  /** The most points requested in any window or period. */
  get fullestWindow(): number {
    return this.#calendar === undefined ? this.#demand.fullest : this.#fullestPeriod;
  }

  /** The hour with the most refusals in the replay, or with the most points if there are none. */
  get worstHour(): Hour | undefined {
    return worse(this.#worst, this.#hour);
  }

  /** Counts a request of the log, whether it is charged again or not. */
  noteLogged(nowUs: number): void {
    this.logged += 1;
    this.series?.record('logged', 1, nowUs);
  }

  /** Counts a request for `cost` points, or as one of the requests that are counted. Times must not decrease. */
  ask(costPoints: number, nowUs: number): void {
    const cost = costIn(this.row, costPoints);
    this.requests += 1;
    this.points += cost;
    const window =
      this.#calendar === undefined
        ? Math.floor(nowUs / this.#windowUs)
        : this.#calendar.at(nowUs / US_PER_MS).startMs;
    if (window !== this.#window) this.#startWindow(window);
    this.#windowPoints += cost;
    if (this.#calendar === undefined) this.#demand.add(cost, nowUs, this.#windowUs);
    else this.#fullestPeriod = Math.max(this.#fullestPeriod, this.#windowPoints);
    const hour = this.#hourAt(nowUs);
    hour.requests += 1;
    hour.points += cost;
    this.series?.record('asked', 1, nowUs);
    this.series?.record('fullest', this.#windowPoints, nowUs);
  }

  refuseBefore(nowUs: number): void {
    this.refusedBefore += 1;
    this.series?.record('refusedBefore', 1, nowUs);
  }

  refuseAfter(nowUs: number): void {
    this.refusedAfter += 1;
    this.#hourAt(nowUs).refused += 1;
    this.series?.record('refusedAfter', 1, nowUs);
  }

  /** Counts the last window, which has not ended. */
  end(): void {
    this.#startWindow(Number.NaN);
  }

  #startWindow(window: number): void {
    if (this.#windowPoints > 0) this.windows.record(this.#windowPoints);
    this.#window = window;
    this.#windowPoints = 0;
  }

  #hourAt(nowUs: number): Hour {
    if (this.#hour !== undefined && nowUs < this.#hour.startUs + HOUR_US) return this.#hour;
    this.#worst = worse(this.#worst, this.#hour);
    this.#hour = { startUs: Math.floor(nowUs / HOUR_US) * HOUR_US, requests: 0, points: 0, refused: 0 };
    return this.#hour;
  }
}

function worse(one: Hour | undefined, other: Hour | undefined): Hour | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const difference = other.refused - one.refused || other.points - one.points;
  return difference > 0 ? other : one;
}
