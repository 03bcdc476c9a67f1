/**
 * What Weir reads and sets of Node's HTTP server beyond its documented interface, checked with Node 20 and 24. Every
 * other file uses public properties only.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** A socket as Node's HTTP server keeps it. */
interface ServedSocket extends Socket {
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
  /** Of a TLS socket: the connection that carries it. The queue of its own handle counts everything ever written. */
  readonly _parent?: ServedSocket | null;
}

/** Calls `close` instead of Node's own closing, once a response with `Connection: close` has been written. */
export function onLastResponseSent(socket: Socket, close: () => void): void {
  socket.destroySoon = close;
}

/** The connection that carries a client's TLS; any other socket itself. */
export function carrierOf(socket: ServedSocket): Socket {
  return socket._parent ?? socket;
}

/** How many bytes the system has accepted for the client; undefined if none are waiting to be sent. */
export function sentWhileWaiting({ _handle, _parent, writableLength }: ServedSocket): number | undefined {
  const handle = _parent?._handle ?? _handle;
  if (!handle || (handle.writeQueueSize === 0 && writableLength === 0)) return undefined;
  return handle.bytesWritten - handle.writeQueueSize;
}

/** Keeps connections open for their response when clients close their sending side. */
export function answerHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/**
 * Keeps connections open when a server closes. Node would close idle ones then, and with them those whose last response has ended, but
 * waits for a client that reads slowly.
 */
export function keepIdleConnections(server: Server): void {
  server.closeIdleConnections = () => {};
}
