import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { UNSENDABLE, UpstreamError } from '../message/errors.ts';

export interface UploadOwner {
  /** Some of the body was sent, or all of it. */
  onUploadProgress(): void;
  onUploadError(error: Error): void;
}

/** Sends the body of one request as fast as the slower of its source and the socket. */
export class Upload {
  readonly #socket: Socket;
  readonly #head: string;
  readonly #body: Readable;
  readonly #owner: UploadOwner;
  readonly #isChunked: boolean;
  /** Bytes of the stated length that have yet to come. */
  #left: number;
  /** The beginning of the body, until it is written with the head. */
  #beginning: Buffer[] | undefined;
  #isDone = false;
  #isBlocked = false;
  #isStopped = false;

  /**
   * @param head the request's head as it is sent
   * @param length undefined for a chunked body
   */
  constructor(socket: Socket, head: string, body: Readable, length: number | undefined, owner: UploadOwner) {
    this.#socket = socket;
    this.#head = head;
    this.#body = body;
    this.#owner = owner;
    this.#isChunked = length === undefined;
    this.#left = length ?? Number.POSITIVE_INFINITY;
    // It may break before it is read, while the connection is being opened.
    body.on('error', this.#onError);
  }

  /** Whether the body was sent in full. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether more of the body could be sent, if only it came. */
  get isWaitingForClient(): boolean {
    return !this.#isDone && !this.#isBlocked && !this.#isStopped;
  }

  /** Asks for the body. The head leaves in the next turn of the event loop, in one write with what has arrived by then. */
  start(): void {
    this.#body.read(0);
    setImmediate(this.#begin);
  }

  onDrain(): void {
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    this.#owner.onUploadProgress();
    this.#body.resume();
  }

  /** Sends and reads no more. */
  stop(): void {
    this.#isStopped = true;
    this.#body.off('data', this.#onData).off('end', this.#onEnd).pause();
  }

  /** Stops without sending the rest; the source is destroyed. */
  cancel(): void {
    this.stop();
    this.#body.destroy();
  }

  /** Stops before anything was sent; the source is as it was. */
  giveBack(): void {
    this.stop();
    this.#body.off('error', this.#onError);
    for (const piece of this.#beginning?.toReversed() ?? []) this.#body.unshift(piece);
  }

  readonly #begin = (): void => {
    if (this.#isStopped) return;
    this.#socket.cork();
    this.#socket.write(this.#head, 'latin1');
    this.#beginning = [];
    // What has arrived flows in the next tick, in its pieces: `read` would copy all into one. An earlier upload may have paused the body.
    this.#body.on('data', this.#onData).on('end', this.#onEnd).resume();
    process.nextTick(this.#sendBeginning);
  };

  readonly #sendBeginning = (): void => {
    this.#socket.uncork();
    this.#beginning = undefined;
    if (this.#body.readableEnded && !this.#isDone && !this.#isStopped) this.#onEnd();
  };

  readonly #onData = (chunk: Buffer): void => {
    const socket = this.#socket;
    this.#beginning?.push(chunk);
    this.#left -= chunk.length;
    if (this.#left < 0) {
      this.#owner.onUploadError(new UpstreamError(UNSENDABLE, 'a body longer than its stated length'));
      return;
    }
    // A chunk of no bytes would end the body.
    if (chunk.length === 0) return;
    if (this.#isChunked) {
      socket.cork();
      socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
      socket.write(chunk);
      socket.write('\r\n', 'latin1');
      socket.uncork();
    } else socket.write(chunk);
    this.#owner.onUploadProgress();
    if (!socket.writableNeedDrain || socket.writableLength === 0) return;
    this.#isBlocked = true;
    this.#body.pause();
  };

  readonly #onEnd = (): void => {
    if (this.#left > 0 && !this.#isChunked) {
      this.#owner.onUploadError(new UpstreamError(UNSENDABLE, 'a body shorter than its stated length'));
      return;
    }
    if (this.#isChunked) this.#socket.write('0\r\n\r\n', 'latin1');
    this.#isDone = true;
    this.#body.off('error', this.#onError);
    this.#owner.onUploadProgress();
  };

  readonly #onError = (error: Error): void => {
    if (!this.#isStopped) this.#owner.onUploadError(error);
  };
}
