import { GrammarError } from './grammar.ts';
import type { FieldSection } from './head/field-section.ts';
import { MAX_FIELDS, readFields, textHead } from './head/read-fields.ts';
import { chunkSizeIn, joinChunks } from './whole-chunks.ts';

/** Of a response: longer lines serve nobody, and trailers are at most as long as a head. */
const RESPONSE_LIMITS = {
  /** Longest chunk-size line, extensions included, and longest trailer. */
  maxLineLength: 4_096,
  maxTrailers: MAX_FIELDS,
  /** Of all trailers together. */
  maxTrailersLength: 16_384,
};

const LINE_FEED = 0x0a;

const CHUNK_OVERRUN = 'a chunk longer than its size';

interface ChunkReceiver {
  onChunkData(bytes: Buffer): void;
}

/** Decodes the chunked coding (RFC 9112 section 7.1) strictly: every line ends with CRLF, and with nothing else. */
export class ChunkedDecoder {
  #phase: 'size' | 'data' | 'data-end' | 'trailers' | 'done' = 'size';
  /** Bytes of the present chunk that have yet to come. */
  #left = 0;
  /** The beginning of a line whose end has not arrived. */
  #line = '';
  #trailerLines = '';
  #trailerCount = 0;
  #trailers: FieldSection | undefined;
  readonly #limits: Readonly<typeof RESPONSE_LIMITS>;

  constructor(limits = RESPONSE_LIMITS) {
    this.#limits = limits;
  }

  /** Whether it stopped at the first trailer above the limit. */
  get hasTooManyTrailers(): boolean {
    return this.#trailerCount > this.#limits.maxTrailers;
  }

  get isDone(): boolean {
    return this.#phase === 'done';
  }

  /** Undefined until the body has ended. */
  get trailers(): FieldSection | undefined {
    return this.#trailers;
  }

  /**
   * Decodes `bytes` from `from` up to `to`, and overwrites them: chunks that are whole in them are received as one.
   *
   * @returns where it stopped, which is before `to` only when the body has ended
   * @throws GrammarError
   */
  read(bytes: Buffer, from: number, to: number, receiver: ChunkReceiver): number {
    let at = from;
    while (at < to && !this.isDone) {
      const joined = this.join(bytes, at, to);
      if (joined === undefined) at = this.readPart(bytes, at, to, receiver);
      else {
        receiver.onChunkData(joined.data);
        at = joined.end;
      }
    }
    return at;
  }

  /** Decodes the next chunks, as far as they are whole in `bytes`; undefined if the next one is not. Overwrites what it has decoded. */
  join(bytes: Buffer, from: number, to: number): ReturnType<typeof joinChunks> {
    return this.#phase === 'size' && this.#line === '' ? joinChunks(bytes, from, to) : undefined;
  }

  /**
   * Decodes a part of a chunk, or a line.
   *
   * @returns where it ends
   * @throws GrammarError
   */
  readPart(bytes: Buffer, from: number, to: number, receiver: ChunkReceiver): number {
    if (this.#phase !== 'data') return this.#readLine(bytes, from, to);
    const end = Math.min(to, from + this.#left);
    this.#left -= end - from;
    if (this.#left === 0) this.#phase = 'data-end';
    receiver.onChunkData(bytes.subarray(from, end));
    return end;
  }

  #readLine(bytes: Buffer, from: number, to: number): number {
    const { maxLineLength } = this.#limits;
    const limit = Math.min(to, from + maxLineLength);
    let end = from;
    while (end < limit && bytes[end] !== LINE_FEED) end++;
    const isWhole = end < limit;
    const line = this.#line + bytes.toString('latin1', from, end);
    if (line.length >= maxLineLength) throw new GrammarError('a long line between chunks');
    if (!isWhole) {
      if (this.#phase === 'data-end' && line !== '' && line !== '\r') throw new GrammarError(CHUNK_OVERRUN);
      this.#line = line;
      return end;
    }
    if (!line.endsWith('\r')) throw new GrammarError('a line between chunks without CRLF');
    this.#line = '';
    this.#take(line.slice(0, -1));
    return end + 1;
  }

  #take(line: string): void {
    if (this.#phase === 'size') {
      const size = chunkSizeIn(line);
      if (size === undefined) throw new GrammarError('a malformed chunk size');
      this.#left = size;
      this.#phase = this.#left === 0 ? 'trailers' : 'data';
    } else if (this.#phase === 'data-end') {
      if (line !== '') throw new GrammarError(CHUNK_OVERRUN);
      this.#phase = 'size';
    } else if (line === '') this.#endTrailers();
    else this.#takeTrailer(line);
  }

  #takeTrailer(line: string): void {
    this.#trailerCount++;
    if (this.hasTooManyTrailers) throw new GrammarError('too many trailers');
    this.#trailerLines += `${line}\r\n`;
    if (this.#trailerLines.length > this.#limits.maxTrailersLength) throw new GrammarError('long trailers');
  }

  #endTrailers(): void {
    const lines = this.#trailerLines;
    const trailers = readFields(textHead(lines), 0, lines.length, this.#limits.maxTrailers);
    const { contentLength, isChunked } = trailers;
    // RFC 9110 section 6.5.1: framing fields cannot be trailers.
    if (contentLength !== undefined || isChunked)
      throw new GrammarError('a framing field among the trailers');
    this.#trailers = trailers;
    this.#phase = 'done';
  }
}
