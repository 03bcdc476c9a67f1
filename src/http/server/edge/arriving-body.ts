import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { countBuffer } from '../../message/buffer-garbage.ts';

/** Bytes that wait in memory for the reader of the body; the rest waits in the socket. */
const KEPT_BYTES = 65_536;

/**
 * The body of a plain request while it arrives. Its reader may destroy it: what arrives then is dropped, so that the connection goes on.
 * What nobody has asked for is not handed to the stream, which would keep it in memory after it was destroyed.
 */
export class ArrivingBody extends Readable {
  readonly length: number;
  /** When its request began to be served. */
  readonly sinceMs = performance.now();
  readonly #socket: Socket;
  #left: number;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #isAsked = false;

  constructor(socket: Socket, length: number) {
    super({ highWaterMark: KEPT_BYTES });
    this.#socket = socket;
    this.length = length;
    this.#left = length;
    // It may break before anyone reads it.
    this.on('error', () => {});
  }

  get hasArrived(): boolean {
    return this.#left === 0;
  }

  /** Whether more could be taken, if only it came. */
  get isAwaited(): boolean {
    return this.#left > 0 && (this.#isAsked || this.destroyed);
  }

  /** @returns what follows the body */
  receive(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#left);
    this.#left -= part.length;
    countBuffer(part);
    if (!this.destroyed) {
      this.#waiting.push(part);
      this.#waitingBytes += part.length;
      this.#pass();
    }
    return bytes.subarray(part.length);
  }

  #pass(): void {
    while (this.#isAsked && this.#waiting.length > 0) {
      const part = this.#waiting.shift() as Buffer;
      this.#waitingBytes -= part.length;
      this.#isAsked = this.push(part);
    }
    if (this.#left > 0) {
      if (this.#waitingBytes + this.readableLength >= KEPT_BYTES) this.#socket.pause();
    } else if (this.#waiting.length === 0) this.push(null);
  }

  override _read(): void {
    this.#isAsked = true;
    this.#pass();
    if (this.#left > 0) this.#socket.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#waiting = [];
    if (this.#left > 0) this.#socket.resume();
    callback(error);
  }
}
