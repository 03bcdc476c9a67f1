import { createReadStream } from 'node:fs';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { US_PER_SECOND } from '../../domain/clock.ts';
import type { LogEntry, ReadLine } from './entry.ts';
import type { LineCounts } from './line-counts.ts';

/** A file is read in pieces of this size: some thousand lines, parsed in a few milliseconds. */
const CHUNK_BYTES = 1_048_576;

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);

/** Where a log comes from: a file on disk, or standard input. */
export interface LogSource {
  readonly name: string;
  /** Size on disk; undefined if unknown, as for standard input. */
  readonly bytes: number | undefined;
  open(): Readable;
}

/** One file of a log, plain or gzip, or standard input. */
export class LogFile {
  readonly name: string;
  readonly bytes: number | undefined;
  /** How many of `bytes` have been read. */
  bytesRead = 0;
  /** Time of the latest line read. Before any line is read, the time of the first. */
  watermarkUs = Number.NEGATIVE_INFINITY;
  readonly #open: () => Readable;
  readonly #readLine: ReadLine;
  readonly #lineCounts: LineCounts;
  readonly #take: (entry: LogEntry) => void;
  #raw: Readable | undefined;
  #chunks: AsyncIterator<Buffer> | undefined;
  #isStopped = false;
  #line = 0;
  readonly #splitter = new LineSplitter((line) => this.#read(line));

  constructor(
    source: LogSource,
    readLine: ReadLine,
    lineCounts: LineCounts,
    take: (entry: LogEntry) => void,
  ) {
    this.name = source.name;
    this.bytes = source.bytes;
    this.#open = () => source.open();
    this.#readLine = readLine;
    this.#lineCounts = lineCounts;
    this.#take = take;
  }

  /** Reads the next piece. @returns false at the end of the file, after an error, and after `stop` */
  async readOn(): Promise<boolean> {
    if (this.#isStopped) return false;
    try {
      this.#chunks ??= (await this.#unpacked())[Symbol.asyncIterator]();
      const { done, value } = await this.#chunks.next();
      if (!done) {
        this.#splitter.push(value);
        return true;
      }
    } catch (error) {
      // The rest is an incomplete line.
      if (this.#isStopped) return false;
      this.#lineCounts.brokenFiles.push({ file: this.name, problem: (error as Error).message });
    }
    this.#splitter.end();
    return false;
  }

  /** Ends the reading, even while it waits for input, because a pipe may never get any. */
  stop(): void {
    this.#isStopped = true;
    this.#raw?.destroy();
  }

  async #unpacked(): Promise<AsyncIterable<Buffer>> {
    this.#raw = this.#open();
    const counted = countBytes(this.#raw, (bytes) => {
      this.bytesRead += bytes;
    });
    const first = await firstBytes(counted);
    const chunks = startingWith(first, counted);
    if (!first.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC)) return chunks;
    const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
    // The reader of gunzip gets its errors.
    pipeline(chunks, gunzip, () => {});
    return gunzip;
  }

  #read(line: string): void {
    this.#line += 1;
    if (line === '') return;
    const lineCounts = this.#lineCounts;
    lineCounts.lines += 1;
    const read = this.#readLine(line);
    if (typeof read === 'string') lineCounts[read] += 1;
    else if ('problem' in read) lineCounts.noteUnreadable(this.name, this.#line, read.problem);
    else {
      if (read.loggedUs > this.watermarkUs) this.watermarkUs = read.loggedUs;
      if (read.atUs % US_PER_SECOND !== 0) lineCounts.hasFractions = true;
      this.#take(read);
    }
  }
}

/** A file on disk as a source. */
export function fileSource(path: string, bytes: number | undefined): LogSource {
  return { name: path, bytes, open: () => createReadStream(path, { highWaterMark: CHUNK_BYTES }) };
}

async function* countBytes(stream: Readable, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    count(chunk.length);
    yield chunk;
  }
}

/** The first chunks, until they show whether this is gzip: the first read of a pipe may get one byte. */
async function firstBytes(chunks: AsyncGenerator<Buffer>): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0);
  while (first.length < GZIP_MAGIC.length) {
    const { done, value } = await chunks.next();
    if (done) break;
    first = Buffer.concat([first, value]);
  }
  return first;
}

async function* startingWith(first: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  yield* rest;
}

const NEWLINE = 10;

/** No log line is longer. A file without line breaks would otherwise fill the memory. */
const LONGEST_LINE_BYTES = 1_048_576;

/** Cuts a stream of bytes into lines. */
class LineSplitter {
  readonly #onLine: (line: string) => void;
  #rest: Buffer<ArrayBufferLike> = Buffer.alloc(0);

  /** @param onLine gets each line without its line break; a line that is too long arrives in pieces */
  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    const last = chunk.lastIndexOf(NEWLINE);
    if (last === -1) {
      this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
      if (this.#rest.length > LONGEST_LINE_BYTES) this.end();
      return;
    }
    const whole = chunk.subarray(0, last + 1);
    // Decodes many lines at once, because decoding each line alone would cost more than parsing it.
    this.#split((this.#rest.length === 0 ? whole : Buffer.concat([this.#rest, whole])).toString('utf8'));
    this.#rest = chunk.subarray(last + 1);
  }

  /** Emits the last line, which may lack a line break. */
  end(): void {
    this.#split(this.#rest.toString('utf8'));
    this.#rest = Buffer.alloc(0);
  }

  #split(text: string): void {
    let start = 0;
    while (start < text.length) {
      const next = text.indexOf('\n', start);
      const end = next === -1 ? text.length : next;
      const isCrLf = end > start && text.charCodeAt(end - 1) === 13;
      this.#onLine(text.slice(start, isCrLf ? end - 1 : end));
      start = end + 1;
    }
  }
}
