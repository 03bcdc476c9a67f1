import type { Socket } from 'node:net';

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
