import type { IncomingMessage } from 'node:http';
import type { Refusal } from '../../../domain/problems.ts';
import { ChunkedDecoder } from '../../message/chunked-decoder.ts';
import { tooManyFields } from '../../message/fields/inspect.ts';
import { GrammarError } from '../../message/grammar.ts';
import type { HeadLimits } from '../../message/head/read-fields.ts';
import { NOT_HTTP } from '../unreadable.ts';

/** What of some bytes belongs to a body, and is to be parsed. */
interface BodyPart {
  readonly pieces: readonly Buffer[];
  /** Where it ends in the bytes. */
  readonly end: number;
}

/** Finds the end of a request's body. */
export interface BodyEnd {
  /** Reads the next bytes, and may overwrite them. */
  read(bytes: Buffer): BodyPart;
  readonly isDone: boolean;
  /** Why it is not read on; undefined if nothing is wrong. */
  readonly brokenBy: Refusal | undefined;
}

/** Undefined if there is no body (RFC 9112 section 6.3). */
export function bodyEndOf({ headers }: IncomingMessage, limits: HeadLimits): BodyEnd | undefined {
  // The parser takes no other coding, and ignores an empty list.
  if (headers['transfer-encoding']) return new ChunkedBody(limits);
  const length = Number(headers['content-length'] ?? 0);
  return length > 0 ? new MeasuredBody(length) : undefined;
}

class MeasuredBody implements BodyEnd {
  readonly brokenBy = undefined;
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isDone(): boolean {
    return this.#left === 0;
  }

  read(bytes: Buffer): BodyPart {
    const end = Math.min(bytes.length, this.#left);
    this.#left -= end;
    return { pieces: [bytes.subarray(0, end)], end };
  }
}

const LINE_END = Buffer.from('\r\n');
const LINE_FEED = 0x0a;

/** Node's parser answers longer extensions of a chunk, and longer trailers than a head, with a 413 and a 431. */
const PARSED_EXTENSIONS = 16_384;
/** So that the parser refuses them first. */
const SLACK = 4_096;

const NOBODY = { onChunkData() {} };

/**
 * Has the chunks that arrive together parsed as one: for each chunk that Node's parser reads there is an event, and a write to the upstream.
 * Everything else is parsed as it arrived.
 */
class ChunkedBody implements BodyEnd {
  readonly #decoder: ChunkedDecoder;
  readonly #maxTrailers: number;
  #isMalformed = false;

  constructor({ maxHeaderBytes, maxHeaderFields }: HeadLimits) {
    const maxLength = Math.max(maxHeaderBytes, PARSED_EXTENSIONS) + SLACK;
    this.#decoder = new ChunkedDecoder({
      maxLineLength: maxLength,
      maxTrailers: maxHeaderFields,
      maxTrailersLength: maxLength,
    });
    this.#maxTrailers = maxHeaderFields;
  }

  get isDone(): boolean {
    return this.#decoder.isDone;
  }

  get brokenBy(): Refusal | undefined {
    if (!this.#isMalformed) return undefined;
    return this.#decoder.hasTooManyTrailers ? tooManyFields(this.#maxTrailers) : NOT_HTTP;
  }

  read(bytes: Buffer): BodyPart {
    const pieces: Buffer[] = [];
    /** What is parsed as it arrived begins and ends here. */
    let from = 0;
    let end = 0;
    while (end < bytes.length && !this.isDone && !this.#isMalformed) {
      const joined = this.#decoder.join(bytes, end, bytes.length);
      if (joined === undefined) end = this.#readPart(bytes, end);
      else {
        if (joined.count > 1) {
          const sizeLine = Buffer.from(`${joined.data.length.toString(16)}\r\n`);
          pieces.push(bytes.subarray(from, end), sizeLine, joined.data, LINE_END);
          from = joined.end;
        }
        end = joined.end;
      }
    }
    pieces.push(bytes.subarray(from, end));
    return { pieces, end };
  }

  /** A malformed line is parsed as well: the parser may know a better reason to refuse it. */
  #readPart(bytes: Buffer, from: number): number {
    try {
      return this.#decoder.readPart(bytes, from, bytes.length, NOBODY);
    } catch (error) {
      if (!(error instanceof GrammarError)) throw error;
      this.#isMalformed = true;
      const feed = bytes.indexOf(LINE_FEED, from);
      return feed === -1 ? bytes.length : feed + 1;
    }
  }
}
