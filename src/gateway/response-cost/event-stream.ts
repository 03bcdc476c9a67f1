import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import type { Reading, UnsettledReason } from '../../domain/settlement/settlement.ts';
import { CollectedBytes } from './collected-bytes.ts';
import { type BodyReader, readingOf } from './json-body.ts';
import type { FoundPoints } from './json-bytes.ts';
import { pointsInParsed } from './member.ts';

const LF = 0x0a;
const CR = 0x0d;

/** Reads the last server-sent event whose data has the member (WHATWG HTML section 9.2.6). The stream may be of any length. */
export class EventStream implements BodyReader {
  readonly #pointer: JsonPointer;
  readonly #collected = new CollectedBytes();
  #found: FoundPoints = 'missing';
  /** Why an event was skipped behind the one that was found. */
  #problem: UnsettledReason | undefined;
  /** Of the event that is arriving: its last byte so far. Undefined between events. */
  #lastByte: number | undefined;

  constructor(pointer: JsonPointer) {
    this.#pointer = pointer;
  }

  add(chunk: Buffer): undefined {
    const from = this.#lastByte === undefined ? 0 : this.#finishEvent(chunk, this.#lastByte);
    // Whole events are read where they are; only the beginning of the next one is kept.
    const to = eventStart(chunk, chunk.length - 1, from) ?? from;
    this.#read(chunk.subarray(from, to));
    if (to < chunk.length) this.#keep(chunk.subarray(to));
  }

  /** @returns where the next event begins */
  #finishEvent(chunk: Buffer, lastByte: number): number {
    const end = begunEventEnd(chunk, lastByte);
    this.#keep(chunk.subarray(0, end));
    if (end === undefined) return chunk.length;
    this.#read(this.#collected.bytes);
    this.#collected.release();
    this.#lastByte = undefined;
    return end;
  }

  #keep(part: Buffer): void {
    // The rest of an event is skipped if its beginning could not be kept.
    const isSkipped = this.#lastByte !== undefined && this.#collected.length === 0;
    this.#lastByte = part.at(-1) ?? this.#lastByte;
    const problem = isSkipped ? undefined : this.#collected.add(part);
    if (problem === undefined) return;
    this.#problem = problem;
    this.#collected.release();
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
        this.#problem = undefined;
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

/** Where the event ends that has begun with other bytes: behind the first empty line. Undefined if there is none. */
function begunEventEnd(bytes: Buffer, lastByte: number): number | undefined {
  let before: number | undefined = lastByte;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    const isPair = before === CR && byte === LF;
    if (isLineEnd(byte) && isLineEnd(before) && !isPair) return index + 1;
    before = byte;
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
