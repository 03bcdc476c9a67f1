/** A line that could not be read, and its place. */
export interface UnreadableLine {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly problem: string;
}

/** Maximum number of unreadable lines to list. Further ones are only counted. */
const NAMED = 20;

/** Counts of the lines of all files. */
export class Tally {
  /** All lines that are not blank. */
  lines = 0;
  /** Lines that are not of requests. */
  other = 0;
  /** Requests that spent nothing. */
  uncharged = 0;
  /** Requests without an Account in the log. */
  anonymous = 0;
  unreadable = 0;
  readonly named: UnreadableLine[] = [];
  /** Files that ended early, with the reason. */
  readonly brokenFiles: { readonly file: string; readonly problem: string }[] = [];
  /** Whether any time in the log has a fraction of a second. */
  hasFractions = false;

  noteUnreadable(file: string, line: number, problem: string): void {
    this.unreadable += 1;
    if (this.named.length < NAMED) this.named.push({ file, line, problem });
  }
}
