import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import type { Reading, UnsettledReason } from '../../domain/settlement/settlement.ts';
import { CollectedBytes } from './collected-bytes.ts';
import { type BodyReader, readingOf } from './json-body.ts';
import type { FoundPoints } from './json-bytes.ts';
import { pointsInParsed } from './member.ts';

const PIECE_BYTES = 65_536;

const LF = 0x0a;
const CR = 0x0d;

/** Reads the last server-sent event whose data has the member (WHATWG HTML section 9.2.6). The stream may be of any length. */
export class EventStream implements BodyReader {
  readonly #pointer: JsonPointer;
  readonly #collected = new CollectedBytes();
  #found: FoundPoints = 'missing';
  /** Why the rest of the stream is not read. */
  #problem: UnsettledReason | undefined;

  constructor(pointer: JsonPointer) {
    this.#pointer = pointer;
  }

  add(chunk: Buffer): UnsettledReason | undefined {
    if (this.#problem !== undefined) return this.#problem;
    // Whole events are read where they are; only the beginning of the next one is kept.
    const end = this.#collected.length === 0 ? (eventStart(chunk, chunk.length - 1, 0) ?? 0) : 0;
    this.#read(chunk.subarray(0, end));
    // In pieces, so that an event alone decides whether it is too long.
    for (let from = end; from < chunk.length && this.#problem === undefined; from += PIECE_BYTES)
      this.#addPiece(chunk.subarray(from, from + PIECE_BYTES));
    return this.#problem;
  }

  #addPiece(piece: Buffer): void {
    this.#problem = this.#collected.add(piece);
    if (this.#problem !== undefined) {
      this.#collected.release();
      return;
    }
    const { bytes } = this.#collected;
    const end = eventStart(bytes, bytes.length - 1, bytes.length - piece.length);
    if (end === undefined) return;
    this.#read(bytes.subarray(0, end));
    this.#collected.dropFirst(end);
  }

  /** An event at the end counts without the empty line that should end it, because some programs leave it out. */
  end(): Reading {
    this.#read(this.#collected.bytes);
    this.#collected.release();
    return readingOf(this.#found, this.#problem);
  }

  /** Reads whole events, the last one first. Each of them contains the byte at `at`, so `to` falls with every step and the loop ends. */
  #read(events: Buffer): void {
    const { quoted } = this.#pointer;
    let to = events.length;
    while (to > 0) {
      const at = quoted === undefined ? contentBefore(events, to) : events.lastIndexOf(quoted, to - 1);
      if (at === -1) return;
      const from = eventStart(events, at, 0) ?? 0;
      const event = events.toString('utf8', from, eventEnd(events, at, to));
      const found = pointsInParsed(dataOf(event), this.#pointer);
      if (found !== 'missing') {
        this.#found = found;
        return;
      }
      to = from;
    }
  }
}

/** Where the event begins that has the byte at `at`: behind the last empty line before it. Undefined if there is none from `least` on. */
function eventStart(bytes: Buffer, at: number, least: number): number | undefined {
  for (let index = at; index >= least && index > 0; index--) {
    const byte = bytes[index];
    if (byte !== LF && byte !== CR) continue;
    const before = byte === LF && bytes[index - 1] === CR ? index - 2 : index - 1;
    if (before >= 0 && isLineEnd(bytes[before])) return index + 1;
  }
  return undefined;
}

/** Where the last byte is before `to` that ends no line; -1 if there is none. */
function contentBefore(bytes: Buffer, to: number): number {
  let at = to - 1;
  while (at >= 0 && isLineEnd(bytes[at])) at--;
  return at;
}

function eventEnd(bytes: Buffer, at: number, to: number): number {
  for (let index = at; index < to; index++) {
    const byte = bytes[index];
    if (byte !== LF && byte !== CR) continue;
    const next = byte === CR && bytes[index + 1] === LF ? index + 2 : index + 1;
    if (next < to && isLineEnd(bytes[next])) return index;
  }
  return to;
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === LF || byte === CR;
}

/** The data of an event: its lines of that name, joined. */
function dataOf(event: string): string {
  // A stream may begin with a byte order mark.
  const lines = event.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
  return lines.flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : [])).join('\n');
}
