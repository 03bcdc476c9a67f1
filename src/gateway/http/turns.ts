import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { markBroken, NOT_HTTP } from './broken.ts';
import { isClosing } from './lingering-close.ts';
import { bytesInParser, pauseReading, resumeReading } from './node-internals.ts';

/** What serves requests. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * How many requests may wait for earlier ones, over all connections. One read of 64 KiB holds 2,500 of the shortest
 * requests, and each takes about 2 KB: without a bound, a few hundred connections could fill the memory.
 */
const MAX_WAITING = 20_000;

/**
 * Serves the requests of a connection in order, one at a time (RFC 9112 section 9.3.2). While one waits, nothing more is read
 * from its connection.
 */
export class Turns {
  readonly #waitingBySocket = new WeakMap<Socket, number>();
  #waiting = 0;

  /** Serves the request now, or once all earlier requests have been answered. */
  take(request: IncomingMessage, response: ServerResponse, serve: Serve): void {
    if (isAnotherProtocol(request)) markBroken(request, NOT_HTTP);
    // Node assigns the socket to a response once earlier ones are finished.
    if (response.socket === null) this.#wait(request, response, serve);
    else serve(request, response);
  }

  #wait(request: IncomingMessage, response: ServerResponse, serve: Serve): void {
    const { socket } = request;
    if (isClosing(socket)) return;
    if (this.#waiting >= MAX_WAITING) {
      socket.destroy();
      return;
    }
    this.#count(socket, 1);
    pauseReading(socket);
    response.once('socket', () => {
      this.#count(socket, -1);
      if (this.#waitingBySocket.get(socket) === 0) resumeReading(socket);
      // Node's parser ignores the end of a connection while it is paused.
      if (socket.readableEnded && !request.complete) markBroken(request, NOT_HTTP);
      serve(request, response);
    });
  }

  #count(socket: Socket, change: number): void {
    const known = this.#waitingBySocket.get(socket);
    if (known === undefined) this.#follow(socket);
    if (socket.destroyed) return;
    this.#waitingBySocket.set(socket, (known ?? 0) + change);
    this.#waiting += change;
  }

  #follow(socket: Socket): void {
    const waiting = () => this.#waitingBySocket.get(socket) ?? 0;
    socket.once('close', () => {
      this.#waiting -= waiting();
      this.#waitingBySocket.set(socket, 0);
    });
    // Node resumes reading once its writes have been flushed.
    socket.on('drain', () => {
      if (waiting() > 0) pauseReading(socket);
    });
  }
}

/**
 * Whether the request line names RTSP or ICE in place of HTTP: Node's parser accepts both and does not report which. The check
 * copies the packet, so it is done for the first request of a connection and for version 1.0 only. A request line that is
 * split over packets is treated as HTTP.
 */
function isAnotherProtocol({ method, url, httpVersion, socket }: IncomingMessage): boolean {
  if (httpVersion !== '1.0' && socket.bytesWritten > 0) return false;
  const packet = bytesInParser(socket);
  if (packet === undefined) return false;
  const line = `${method} ${url} `;
  return (
    !packet.includes(`${line}HTTP/`, 0, 'latin1') &&
    (packet.includes(`${line}RTSP/`, 0, 'latin1') || packet.includes(`${line}ICE/`, 0, 'latin1'))
  );
}
