/**
 * What Weir reads and sets of Node's HTTP server beyond its documented interface, checked with Node 20 and 24. Every
 * other file uses public properties only.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { edgeResponses } from '../edge/response.ts';

/** A socket as Node's HTTP server keeps it. */
interface ServedSocket extends Socket {
  /** The response that is being written. */
  _httpMessage?: ServerResponse | null;
  /** Set while Node does not read, so that reading a request's body does not start it again. */
  _paused?: boolean;
  readonly parser?: {
    readonly incoming: IncomingMessage | null;
    resume(): void;
    getCurrentBuffer(): Buffer | undefined;
  } | null;
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
  /** Of a TLS socket: the connection that carries it. The queue of its own handle counts everything ever written. */
  readonly _parent?: ServedSocket | null;
}

/** The response in progress on this connection; undefined between requests. */
export function responseOf(socket: ServedSocket): ServerResponse | undefined {
  const response = edgeResponses.get(socket) as ServerResponse | undefined;
  return response ?? socket._httpMessage ?? undefined;
}

/** The request whose bytes the parser read last; its body may be unfinished. */
export function requestOf({ parser }: ServedSocket): IncomingMessage | undefined {
  return parser?.incoming ?? undefined;
}

/** The packet that is being parsed; empty outside of the parser's callbacks. */
export function bytesInParser({ parser }: ServedSocket): Buffer | undefined {
  return parser?.getCurrentBuffer();
}

/** Stops reading until `resumeReading`; the packet that is being parsed is still parsed to its end. */
export function pauseReading(socket: ServedSocket): void {
  socket._paused = true;
  socket.pause();
}

export function resumeReading(socket: ServedSocket): void {
  if (socket._paused !== true) return;
  socket._paused = false;
  socket.parser?.resume();
  socket.resume();
}

/** Calls `close` in place of Node's own closing, once a response with `Connection: close` has been written. */
export function onLastResponseSent(socket: Socket, close: () => void): void {
  socket.destroySoon = close;
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
