import type { Socket } from 'node:net';
import { countBuffer } from '../message/buffer-garbage.ts';

/** Enough for most responses. */
const SMALL_BYTES = 16_384;
/** For connections whose reads fill the small one: fewer and larger reads and writes. */
const LARGE_BYTES = 131_072;

/** The memory that one connection reads into: the same again and again, unless what was read is still in use. */
export class ReadBuffer {
  #bytes = Buffer.allocUnsafeSlow(SMALL_BYTES);
  #isInUse = false;
  #isTooSmall = false;

  /** Notes how much was read. */
  noteRead(byteCount: number): void {
    this.#isTooSmall = byteCount === SMALL_BYTES && this.#bytes.length === SMALL_BYTES;
  }

  /** Gives what was read away: the next read goes elsewhere. */
  keep(): void {
    this.#isInUse = true;
  }

  /** Where the next read goes. */
  next(): Buffer {
    if (this.#isTooSmall || this.#isInUse) {
      const size = this.#isTooSmall ? LARGE_BYTES : this.#bytes.length;
      this.#bytes = Buffer.allocUnsafeSlow(size);
      countBuffer(this.#bytes);
      this.#isTooSmall = false;
      this.#isInUse = false;
    }
    return this.#bytes;
  }
}

/**
 * What is written to a socket. Node destroys a socket when a write fails, and drops what it has received but not read. An upstream that
 * refuses a body may answer and close at once, so a failed write ends the writes alone: what has arrived is read until the end.
 */
export class SocketWrites {
  readonly #socket: Socket;
  readonly #onFailure: (error: Error) => void;
  #hasSent = false;
  #error: Error | undefined;

  /** @param onFailure called once; nothing is written from then on, and the owner has to destroy the socket */
  constructor(socket: Socket, onFailure: (error: Error) => void) {
    this.#socket = socket;
    this.#onFailure = onFailure;
    // A subclass of Socket would override these two methods. Node creates TLS sockets itself, so there can be none.
    const write = socket._write;
    const writeMany = socket._writev;
    socket._write = (chunk, encoding, callback) =>
      this.#run((onWritten) => write.call(socket, chunk, encoding, onWritten), callback);
    socket._writev = (chunks, callback) =>
      this.#run((onWritten) => writeMany?.call(socket, chunks, onWritten), callback);
  }

  /** Counts from here whether anything is sent. */
  begin(): void {
    this.#hasSent = false;
  }

  /** Whether the system may have accepted a byte since `begin`. */
  get hasSent(): boolean {
    return this.#hasSent;
  }

  get error(): Error | undefined {
    return this.#error;
  }

  #run(write: (onWritten: (error?: Error | null) => void) => void, callback: () => void): void {
    write((error) => {
      if (error && !this.#socket.destroyed) {
        this.#error = error;
        this.#onFailure(error);
        // Without its callback, this write lasts until the socket is destroyed: Node begins no other.
        return;
      }
      this.#hasSent = true;
      callback();
    });
    // The system refuses a write at once, or it may have taken a part.
    if (this.#error === undefined) this.#hasSent = true;
  }
}
