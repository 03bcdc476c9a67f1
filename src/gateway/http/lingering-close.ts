/**
 * Closes a connection without losing its response. Closing a socket with unread bytes resets it, and the reset can overtake the
 * response. So the writing side ends first, and incoming bytes are read and dropped for a moment; nothing in them is executed.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { EdgeRequest } from '../edge/request.ts';
import { connectionEvent } from '../tls/server.ts';
import { countBuffer } from './buffer-garbage.ts';
import { hasBody } from './inspect.ts';
import { onLastResponseSent, responseOf, resumeReading } from './node-internals.ts';
import { isEnded } from './whole-response.ts';

/** Long enough for a response to arrive; short enough that a client that keeps sending costs little. */
const LINGER_MS = 1_000;

/** The rest of a body is read to its end up to this size, so that the connection can be reused. */
const SMALL_BODY_BYTES = 65_536;

const closing = new WeakSet<Socket>();

/** Whether this connection already has its last response; later requests on it are not executed. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** Closes the connection once the next response has been sent. */
export function closeAfterResponse({ socket }: IncomingMessage): void {
  closing.add(socket);
  onLastResponseSent(socket, () => linger(socket));
}

/** Makes a response, which may have begun, the last of its connection. */
export function closeBehind(response: ServerResponse): void {
  const { socket } = response.req;
  if (response.headersSent) {
    closing.add(socket);
    response.once('finish', () => linger(socket));
  } else {
    response.shouldKeepAlive = false;
    closeAfterResponse(response.req);
  }
}

/** Writes a last response to a connection whose parser has failed, and closes it. */
export function closeWith(socket: Socket, answer: string): void {
  socket.write(answer, 'latin1');
  closeNow(socket);
}

/** Closes a connection that already has its last response. */
export function closeNow(socket: Socket): void {
  closing.add(socket);
  linger(socket);
}

/** Whether the rest of a refused upload is too long, or of unknown length, so it is not read. */
export function isUploadUnfinished(request: IncomingMessage): boolean {
  if (request.complete || !hasBody(request)) return false;
  if (request.headers.expect !== undefined) return true;
  const length = request.headers['content-length'];
  return length === undefined || Number(length) > SMALL_BODY_BYTES;
}

/** Reads and drops what is left of an upload. Node would do so by itself, but its buffers have to be counted. */
export function dropUpload(request: IncomingMessage | EdgeRequest): void {
  if (request instanceof EdgeRequest || !hasBody(request)) return;
  request.on('data', countBuffer).resume();
}

/** TCP keep-alive interval for silent, half-closed clients. */
const PROBE_MS = 1_000;

/**
 * Handles clients that close their sending side. Before the response has begun, they are waiting for it (RFC 9112 section 9.6).
 * Later, they have disconnected: nothing else would show that while a response, such as an event stream, is silent.
 */
export function followClientEnds(server: Server): void {
  server.on(connectionEvent(server), (socket: Socket) =>
    socket.off('end', onClientEnd).on('end', onClientEnd),
  );
}

function onClientEnd(this: Socket): void {
  const response = responseOf(this);
  if (response === undefined) return;
  if (response.headersSent && !isEnded(response)) response.destroy();
  else this.setKeepAlive(true, PROBE_MS);
}

/** Whether the client is no longer waiting for this response: it disconnected, or its connection is closing. */
export function isAbandoned({ destroyed, req: { socket } }: ServerResponse): boolean {
  return destroyed || socket.destroyed || socket.writableEnded;
}

/** Ends the writing side now, and the connection once the client ends its side or `LINGER_MS` has passed. */
export function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('end', () => socket.destroy());
  socket.once('close', () => clearTimeout(timer));
  resumeReading(socket);
  socket.end(() => {
    if (socket.readableEnded) socket.destroy();
  });
}
