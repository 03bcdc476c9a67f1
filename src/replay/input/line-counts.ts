import { US_PER_SECOND } from '../../domain/clock.ts';
import type { LogEntry } from './entry.ts';

/** Maximum number of unreadable lines to list. Further ones are only counted. */
const NAMED = 20;

/** Counts of the lines of all files. */
export class LineCounts {
  /** All lines that are not blank. */
  lines = 0;
  /** Lines that are not of requests. */
  other = 0;
  /** Requests that spent nothing. */
  uncharged = 0;
  /** Requests without an Account in the log. */
  anonymous = 0;
  unreadable = 0;
  readonly named: {
    readonly file: string;
    /** Counted from 1. */
    readonly line: number;
    readonly problem: string;
  }[] = [];
  /** Files that ended early, with the reason. */
  readonly brokenFiles: { readonly file: string; readonly problem: string }[] = [];
  /** Requests that the gateway served without counting them, because its store did not answer. */
  uncounted = 0;
  /** Requests that equal the one before them in every respect, their times included. */
  repeated = 0;
  /** Whether two files cover the same time, like the logs of two replicas. */
  haveFilesOverlapped = false;
  /** Whether any time in the log has a fraction of a second. */
  hasFractions = false;

  noteUnreadable(file: string, line: number, problem: string): void {
    this.unreadable += 1;
    if (this.named.length < NAMED) this.named.push({ file, line, problem });
  }
}

/** Files of one gateway, one after the other, overlap by the length of a response at most. */
const LEAST_OVERLAP_US = 10 * US_PER_SECOND;

/** Looks for signs in a log that its requests were not all counted once, by one clock. */
export class Scrutiny {
  readonly #lineCounts: LineCounts;
  readonly #spans: { fromUs: number; toUs: number }[] = [];
  #last: LogEntry | undefined;

  constructor(lineCounts: LineCounts) {
    this.#lineCounts = lineCounts;
  }

  /** Notes the time of a file's line. */
  read(file: number, { loggedUs }: LogEntry): void {
    const span = this.#spans[file];
    if (span === undefined) {
      this.#spans[file] = { fromUs: loggedUs, toUs: loggedUs };
    } else {
      span.fromUs = Math.min(span.fromUs, loggedUs);
      span.toUs = Math.max(span.toUs, loggedUs);
    }
  }

  /** Notes a request, in the order of the charges: a line that was read twice follows itself. */
  deliver(entry: LogEntry): void {
    if (entry.wasUncounted === true) this.#lineCounts.uncounted += 1;
    if (this.#last !== undefined && areSame(this.#last, entry)) this.#lineCounts.repeated += 1;
    this.#last = entry;
  }

  end(): void {
    const spans = this.#spans.filter((span) => span !== undefined).sort((a, b) => a.fromUs - b.fromUs);
    let latestUs = Number.NEGATIVE_INFINITY;
    for (const { fromUs, toUs } of spans) {
      if (Math.min(latestUs, toUs) - fromUs > LEAST_OVERLAP_US) this.#lineCounts.haveFilesOverlapped = true;
      latestUs = Math.max(latestUs, toUs);
    }
  }
}

function areSame(one: LogEntry, other: LogEntry): boolean {
  return (
    one.atUs === other.atUs &&
    one.loggedUs === other.loggedUs &&
    one.account === other.account &&
    one.principal === other.principal &&
    one.address === other.address &&
    one.operation === other.operation &&
    one.cost === other.cost
  );
}
