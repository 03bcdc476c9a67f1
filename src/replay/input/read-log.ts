import { setImmediate } from 'node:timers/promises';
import type { LogEntry, ReadLine } from './entry.ts';
import { LineCounts, Scrutiny } from './line-counts.ts';
import { LogFile, type LogSource } from './log-file.ts';

/** The progress of the reading. */
export interface ReadProgress {
  readonly file: string;
  readonly lines: number;
  readonly bytesRead: number;
  /** Undefined if the size of a source is unknown. */
  readonly bytes: number | undefined;
}

export interface ReadLogOptions {
  readonly sources: readonly LogSource[];
  readonly readLine: ReadLine;
  /** Called after each piece of a file. */
  onProgress(progress: ReadProgress): void;
  /** Ends the reading early; what was read so far is delivered. */
  readonly signal: AbortSignal;
}

/**
 * Reads all files of a log, merged by time. Only files whose times overlap are open at once. Resolves to the counts of
 * lines.
 *
 * @param deliver gets every charged request, in the order of the charges
 */
export async function readLog(
  { sources, readLine, onProgress, signal }: ReadLogOptions,
  deliver: (entry: LogEntry) => void,
): Promise<LineCounts> {
  const lineCounts = new LineCounts();
  const scrutiny = new Scrutiny(lineCounts);
  const order = new InOrder((entry) => {
    scrutiny.deliver(entry);
    deliver(entry);
  });
  const files = sources.map((source, index) => {
    const take = (entry: LogEntry) => {
      scrutiny.read(index, entry);
      order.take(entry);
    };
    return new LogFile(source, readLine, lineCounts, take);
  });
  for (const [index, file] of files.entries()) {
    const source = sources[index];
    if (files.length > 1 && source?.bytes !== undefined)
      file.watermarkUs = await firstTimeUs(source, readLine);
  }
  const open = new Set(files);
  const stop = () => {
    for (const file of open) file.stop();
  };
  signal.addEventListener('abort', stop);
  while (open.size > 0 && !signal.aborted) {
    const file = earliest(open);
    if (!(await file.readOn())) open.delete(file);
    if (open.size > 0) order.advance(earliest(open).watermarkUs);
    onProgress(progressOf(file, files, lineCounts));
    // Yields, so that signals are handled: reading from a fast disk never waits.
    await setImmediate();
  }
  signal.removeEventListener('abort', stop);
  stop();
  order.end();
  scrutiny.end();
  return lineCounts;
}

/** The file to read next: the one with the earliest position. */
function earliest(files: ReadonlySet<LogFile>): LogFile {
  let found: LogFile | undefined;
  for (const file of files) {
    if (found === undefined || file.watermarkUs < found.watermarkUs) found = file;
  }
  if (found === undefined) throw new Error('no file is open');
  return found;
}

/** The time of the first charged request in a file's first lines. Without one, a time before all others. */
async function firstTimeUs(source: LogSource, readLine: ReadLine): Promise<number> {
  let first = Number.NEGATIVE_INFINITY;
  const take = ({ loggedUs }: LogEntry) => {
    if (first === Number.NEGATIVE_INFINITY) first = loggedUs;
  };
  const file = new LogFile(source, readLine, new LineCounts(), take);
  await file.readOn();
  file.stop();
  return first;
}

function progressOf(file: LogFile, files: readonly LogFile[], { lines }: LineCounts): ReadProgress {
  let bytes: number | undefined = 0;
  let bytesRead = 0;
  for (const one of files) {
    bytesRead += one.bytesRead;
    bytes = bytes === undefined || one.bytes === undefined ? undefined : bytes + one.bytes;
  }
  return { file: file.name, lines, bytesRead, bytes };
}

/**
 * Longest response whose line is still put into the order of the charges. Lines are written when responses end, so this
 * bounds the entries held in memory.
 */
const LONGEST_RESPONSE_US = 10_000_000;

/** Time between two sorts. A shorter one would cost more time, a longer one more memory. */
const RELEASE_EVERY_US = LONGEST_RESPONSE_US / 4;

/**
 * Most entries that are held: what 40,000 requests a second have in that time. A line of the far future, or a log with its newest part first,
 * makes all that follows late. These entries are in order among so many.
 */
export const MOST_HELD = 500_000;

/** Puts entries into the order of their charges. Lines come in the order in which responses ended, from several files. */
class InOrder {
  readonly #deliver: (entry: LogEntry) => void;
  #held: LogEntry[] = [];
  #releasedUntilUs = Number.NEGATIVE_INFINITY;

  constructor(deliver: (entry: LogEntry) => void) {
    this.#deliver = deliver;
  }

  take(entry: LogEntry): void {
    this.#held.push(entry);
    if (this.#held.length >= MOST_HELD) this.#release(Number.POSITIVE_INFINITY, MOST_HELD / 2);
  }

  /** @param watermarkUs no file has a line before this time left to read */
  advance(watermarkUs: number): void {
    const untilUs = watermarkUs - LONGEST_RESPONSE_US;
    if (untilUs < this.#releasedUntilUs + RELEASE_EVERY_US) return;
    this.#releasedUntilUs = untilUs;
    this.#release(untilUs);
  }

  end(): void {
    this.#release(Number.POSITIVE_INFINITY);
  }

  #release(untilUs: number, most = Number.POSITIVE_INFINITY): void {
    // Stable: entries of the same microsecond keep the order of the log.
    const sorted = this.#held.sort((one, other) => one.atUs - other.atUs);
    let count = 0;
    for (const entry of sorted) {
      if (entry.atUs > untilUs || count >= most) break;
      this.#deliver(entry);
      count += 1;
    }
    this.#held = sorted.slice(count);
  }
}
