import { setImmediate } from 'node:timers/promises';
import type { Entry, ReadLine } from './entry.ts';
import { InOrder } from './in-order.ts';
import { LogFile, type LogSource } from './log-file.ts';
import { Tally } from './tally.ts';

/** The progress of the reading. */
export interface ReadProgress {
  readonly file: string;
  readonly lines: number;
  readonly bytesRead: number;
  /** Undefined if the size of a source is unknown. */
  readonly bytes: number | undefined;
}

export interface ReadOptions {
  readonly sources: readonly LogSource[];
  readonly readLine: ReadLine;
  /** Gets every charged request, in the order of the charges. */
  deliver(entry: Entry): void;
  /** Called after each piece of a file. */
  onProgress(progress: ReadProgress): void;
  /** Ends the reading early; what was read so far is delivered. */
  readonly signal: AbortSignal;
}

/**
 * Reads all files of a log, merged by time. Only files whose times overlap are open at once. Resolves to the counts of
 * lines.
 */
export async function readLog({
  sources,
  readLine,
  deliver,
  onProgress,
  signal,
}: ReadOptions): Promise<Tally> {
  const tally = new Tally();
  const order = new InOrder(deliver);
  const files = sources.map((source) => new LogFile(source, readLine, tally, (entry) => order.take(entry)));
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
    onProgress(progressOf(file, files, tally));
    // Yields, so that signals are handled: reading from a fast disk never waits.
    await setImmediate();
  }
  signal.removeEventListener('abort', stop);
  stop();
  order.end();
  return tally;
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
  const take = ({ loggedUs }: Entry) => {
    if (first === Number.NEGATIVE_INFINITY) first = loggedUs;
  };
  const file = new LogFile(source, readLine, new Tally(), take);
  await file.readOn();
  file.stop();
  return first;
}

function progressOf(file: LogFile, files: readonly LogFile[], { lines }: Tally): ReadProgress {
  let bytes: number | undefined = 0;
  let bytesRead = 0;
  for (const one of files) {
    bytesRead += one.bytesRead;
    bytes = bytes === undefined || one.bytes === undefined ? undefined : bytes + one.bytes;
  }
  return { file: file.name, lines, bytesRead, bytes };
}
