import { GrammarError } from './grammar.ts';
import type { FieldSection } from './head/field-section.ts';
import { readFields, textHead } from './head/read-fields.ts';

/** Longest chunk-size line, extensions included: more serves nobody. */
const MAX_LINE_LENGTH = 4_096;
/** Longest trailer section; the same as a response head. */
const MAX_TRAILERS_LENGTH = 16_384;

/** 13 hexadecimal digits stay below 2^53. Extensions (RFC 9112 section 7.1.1) are read strictly and ignored. */
const CHUNK_SIZE =
  /^([0-9a-f]{1,13})(?:;[!#$%&'*+\-.^_`|~0-9a-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9a-z]+|"(?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*"))?)*$/i;

const LINE_FEED = 0x0a;

const CHUNK_OVERRUN = 'a chunk longer than its size';

export interface ChunkReceiver {
  onChunkData(bytes: Buffer): void;
}

/** Decodes the chunked coding (RFC 9112 section 7.1) strictly: every line ends with CRLF, and with nothing else. */
export class ChunkedDecoder {
  #phase: 'size' | 'data' | 'data-end' | 'trailers' | 'done' = 'size';
  /** Bytes of the present chunk that have yet to come. */
  #left = 0;
  /** A line of which only the beginning has come. */
  #line = '';
  #trailerLines = '';
  #trailers: FieldSection | undefined;

  get isDone(): boolean {
    return this.#phase === 'done';
  }

  /** Undefined until the body has ended. */
  get trailers(): FieldSection | undefined {
    return this.#trailers;
  }

  /**
   * Decodes `bytes` from `from` up to `to`.
   *
   * @returns where it stopped, which is before `to` only when the body has ended
   * @throws GrammarError
   */
  read(bytes: Buffer, from: number, to: number, receiver: ChunkReceiver): number {
    let at = from;
    while (at < to && this.#phase !== 'done') {
      if (this.#phase === 'data') {
        const end = Math.min(to, at + this.#left);
        this.#left -= end - at;
        if (this.#left === 0) this.#phase = 'data-end';
        receiver.onChunkData(bytes.subarray(at, end));
        at = end;
      } else at = this.#readLine(bytes, at, to);
    }
    return at;
  }

  #readLine(bytes: Buffer, from: number, to: number): number {
    const limit = Math.min(to, from + MAX_LINE_LENGTH);
    let end = from;
    while (end < limit && bytes[end] !== LINE_FEED) end++;
    const isWhole = end < limit;
    const line = this.#line + bytes.toString('latin1', from, end);
    if (line.length >= MAX_LINE_LENGTH) throw new GrammarError('a long line between chunks');
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
      const size = CHUNK_SIZE.exec(line)?.[1];
      if (size === undefined) throw new GrammarError('a malformed chunk size');
      this.#left = Number.parseInt(size, 16);
      this.#phase = this.#left === 0 ? 'trailers' : 'data';
    } else if (this.#phase === 'data-end') {
      if (line !== '') throw new GrammarError(CHUNK_OVERRUN);
      this.#phase = 'size';
    } else if (line === '') this.#endTrailers();
    else {
      this.#trailerLines += `${line}\r\n`;
      if (this.#trailerLines.length > MAX_TRAILERS_LENGTH) throw new GrammarError('long trailers');
    }
  }

  #endTrailers(): void {
    const lines = this.#trailerLines;
    const trailers = readFields(textHead(lines), 0, lines.length);
    const { contentLength, isChunked } = trailers;
    // RFC 9110 section 6.5.1: framing fields cannot be trailers.
    if (contentLength !== undefined || isChunked)
      throw new GrammarError('a framing field among the trailers');
    this.#trailers = trailers;
    this.#phase = 'done';
  }
}
