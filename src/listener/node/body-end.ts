import type { IncomingMessage } from 'node:http';
import { ChunkedDecoder } from '../../http1/chunked-decoder.ts';
import { GrammarError } from '../../http1/grammar.ts';

/** Finds the end of a request's body. */
export interface BodyEnd {
  /** @returns where the body ends in these bytes, or their length */
  read(bytes: Buffer): number;
  readonly isDone: boolean;
}

/** Undefined if there is no body (RFC 9112 section 6.3). */
export function bodyEndOf({ headers }: IncomingMessage): BodyEnd | undefined {
  // The parser takes no other coding, and ignores an empty list.
  if (headers['transfer-encoding']) return new ChunkedBody();
  const length = Number(headers['content-length'] ?? 0);
  return length > 0 ? new MeasuredBody(length) : undefined;
}

class MeasuredBody implements BodyEnd {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isDone(): boolean {
    return this.#left === 0;
  }

  read({ length }: Buffer): number {
    const taken = Math.min(length, this.#left);
    this.#left -= taken;
    return taken;
  }
}

class ChunkedBody implements BodyEnd {
  readonly #decoder = new ChunkedDecoder();
  #isMalformed = false;

  get isDone(): boolean {
    return this.#decoder.isDone;
  }

  /** Of a malformed body everything is parsed: the parser has the last word. */
  read(bytes: Buffer): number {
    if (this.#isMalformed) return bytes.length;
    try {
      return this.#decoder.read(bytes, 0, bytes.length, { onChunkData() {} });
    } catch (error) {
      if (!(error instanceof GrammarError)) throw error;
      this.#isMalformed = true;
      return bytes.length;
    }
  }
}
