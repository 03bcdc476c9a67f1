/** A line that could not be read, with where it is. */
export interface UnreadableLine {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly problem: string;
}

/** Unreadable lines that are named; the others are counted. */
const NAMED = 20;

/** What became of the lines of all files. */
export class Tally {
  /** All that are not blank. */
  lines = 0;
  /** Not lines of requests. */
  other = 0;
  /** Requests that spent nothing. */
  uncharged = 0;
  /** Requests whose Account the log does not give. */
  anonymous = 0;
  unreadable = 0;
  readonly named: UnreadableLine[] = [];
  /** Files that ended early, with the reason. */
  readonly brokenFiles: { readonly file: string; readonly problem: string }[] = [];
  /** Whether some time of the log is finer than a second. */
  hasFractions = false;

  noteUnreadable(file: string, line: number, problem: string): void {
    this.unreadable += 1;
    if (this.named.length < NAMED) this.named.push({ file, line, problem });
  }
}
