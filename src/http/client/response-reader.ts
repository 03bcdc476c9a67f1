import { ChunkedDecoder } from '../message/chunked-decoder.ts';
import { GrammarError } from '../message/grammar.ts';
import type { FieldSection } from '../message/head/field-section.ts';
import { textHead } from '../message/head/read-fields.ts';
import { type ResponseHead, readResponseHead } from '../message/head/response-head.ts';

/** Longest response head, interim ones each. */
const MAX_HEAD_LENGTH = 16_384;
/** Interim responses before the final one: a sender of more is broken. */
const MAX_INTERIM = 32;
/** Most heads are shorter than this. What follows is mostly body, which is not converted to text. */
const SCAN_LENGTH = 2_048;

const VERSION = 'HTTP/1.';
const HEAD_END = '\r\n\r\n';

/** Takes a response as it is read. A chunk is valid during the call only, unless `onFlush` says otherwise. */
export interface ResponseReceiver {
  /** A 1xx response; the final one follows. */
  onInterim(head: ResponseHead): void;
  onHead(head: ResponseHead): void;
  onData(chunk: Buffer): void;
  /** The whole body, in latin1. It arrived with its head and is short; `onData` is not called. */
  onWholeBody(text: string): void;
  /** @param trailers undefined where the response was not chunked */
  onEnd(trailers: FieldSection | undefined): void;
}

/** Reads one response, whatever pieces it arrives in. */
export class ResponseReader {
  readonly #isHeadRequest: boolean;
  readonly #receiver: ResponseReceiver;
  readonly #takesUpgrade: boolean;
  #phase: 'head' | 'length' | 'chunked' | 'until-close' | 'done' = 'head';
  /** The beginning of a head that has not fully arrived. */
  #partialHead = '';
  #interimCount = 0;
  #left = 0;
  #chunked: ChunkedDecoder | undefined;
  #head: ResponseHead | undefined;

  /** @param takesUpgrade whether a 101 ends the response; it is refused otherwise */
  constructor(method: string, receiver: ResponseReceiver, { takesUpgrade = false } = {}) {
    this.#isHeadRequest = method === 'HEAD';
    this.#receiver = receiver;
    this.#takesUpgrade = takesUpgrade;
  }

  /** The head of the final response, or of a 101, once it has arrived. */
  get head(): ResponseHead | undefined {
    return this.#head;
  }

  get isDone(): boolean {
    return this.#phase === 'done';
  }

  /**
   * Reads `bytes` from `from` up to `to`.
   *
   * @returns where it stopped, which is before `to` only when the response has ended
   * @throws GrammarError
   */
  read(bytes: Buffer, from: number, to: number): number {
    let at = from;
    while (at < to && this.#phase === 'head') at = this.#readHead(bytes, at, Math.min(to, at + SCAN_LENGTH));
    if (at === to || this.#phase === 'done') return at;
    if (this.#chunked !== undefined) {
      at = this.#chunked.read(bytes, at, to, this);
      if (this.#chunked.isDone) this.#end(this.#chunked.trailers);
      return at;
    }
    return this.#readPlain(bytes, at, to);
  }

  /**
   * The upstream closed the connection.
   *
   * @returns whether that ended the response properly (RFC 9112 section 8)
   */
  readClose(): boolean {
    if (this.#phase === 'until-close') this.#end(undefined);
    return this.#phase === 'done';
  }

  /** Calls the receiver no more. */
  abandon(): void {
    this.#phase = 'done';
  }

  onChunkData(chunk: Buffer): void {
    if (!this.isDone) this.#receiver.onData(chunk);
  }

  #readPlain(bytes: Buffer, from: number, to: number): number {
    const end = this.#phase === 'length' ? Math.min(to, from + this.#left) : to;
    this.#left -= end - from;
    this.#receiver.onData(from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end));
    if (this.#phase === 'length' && this.#left === 0) this.#end(undefined);
    return end;
  }

  #readHead(bytes: Buffer, from: number, to: number): number {
    const known = this.#partialHead.length;
    const text = this.#partialHead + bytes.toString('latin1', from, to);
    const end = text.indexOf(HEAD_END, Math.max(0, known - HEAD_END.length + 1));
    if (end === -1 ? text.length > MAX_HEAD_LENGTH : end + HEAD_END.length > MAX_HEAD_LENGTH) {
      throw new GrammarError('a long response head');
    }
    if (end === -1) {
      if (!VERSION.startsWith(text.slice(0, VERSION.length))) throw new GrammarError('not HTTP/1.1');
      this.#partialHead = text;
      return to;
    }
    this.#partialHead = '';
    const head = known === 0 ? { bytes, base: from, text } : textHead(text);
    this.#takeHead(readResponseHead(head, end + 2, this.#isHeadRequest));
    const bodyAt = end + HEAD_END.length;
    return from - known + bodyAt + this.#takeWholeBody(text, bodyAt);
  }

  /** Most bodies arrive with their heads: cut out of the same text, they take 400 bytes of heap less. @returns the length taken */
  #takeWholeBody(text: string, from: number): number {
    const length = this.#left;
    if (this.#phase !== 'length' || from + length > text.length) return 0;
    this.#left = 0;
    this.#receiver.onWholeBody(text.slice(from, from + length));
    this.#end(undefined);
    return length;
  }

  #takeHead(head: ResponseHead): void {
    if (head.status === 101) {
      if (!this.#takesUpgrade) throw new GrammarError('a switch of protocols that was not requested');
      this.#head = head;
      this.#phase = 'done';
      return;
    }
    if (head.status < 200) {
      if (++this.#interimCount > MAX_INTERIM) throw new GrammarError('too many interim responses');
      // Readers disagree on whether a final response may follow.
      if (!head.isPersistent) throw new GrammarError('an interim response that closes the connection');
      this.#receiver.onInterim(head);
      return;
    }
    this.#head = head;
    if (head.framing !== 'none') this.#phase = head.framing;
    this.#left = head.bodyLength;
    if (head.framing === 'chunked') this.#chunked = new ChunkedDecoder();
    this.#receiver.onHead(head);
    if (head.framing === 'none') this.#end(undefined);
  }

  #end(trailers: FieldSection | undefined): void {
    if (this.isDone) return;
    this.#phase = 'done';
    this.#receiver.onEnd(trailers);
  }
}
