/**
 * Ends a connection without losing what was said on it. A socket that is closed while bytes are unread is reset,
 * and the reset can overtake the response; so the writing side ends first, and what still arrives is read for a
 * moment and thrown away: nothing that follows on such a connection is run.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody } from './inspect.ts';
import { onLastResponseSent, responseOf, resumeReading } from './node-internals.ts';

/** Enough for a response to arrive; short enough that a client that goes on sending costs little. */
const LINGER_MS = 1_000;

/** A rest of a body up to this is read to its end, so that the connection stays usable. */
const SMALL_BODY_BYTES = 65_536;

const closing = new WeakSet<Socket>();

/** Whether this connection's last response is already decided: a request that was sent behind it is not run. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/** Closes the connection once the response that is about to be written has gone out. */
export function closeAfterResponse({ socket }: IncomingMessage): void {
  closing.add(socket);
  onLastResponseSent(socket, () => linger(socket));
}

/** Lets a response that may have begun go out as the last of its connection. */
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

/** Writes the last answer of a connection whose parser gave up, and closes it. */
export function closeWith(socket: Socket, answer: string): void {
  closing.add(socket);
  socket.write(answer, 'latin1');
  linger(socket);
}

/** Whether a refused upload is too long, or too uncertain, to be read to its end. */
export function isUploadUnfinished(request: IncomingMessage): boolean {
  if (request.complete || !hasBody(request)) return false;
  if (request.headers.expect !== undefined) return true;
  const length = request.headers['content-length'];
  return length === undefined || Number(length) > SMALL_BODY_BYTES;
}

/** How often the system asks a silent, half-closed client whether it is still there. */
const PROBE_MS = 1_000;

/**
 * Decides what it means that clients end their sending side. Before the answer has begun, they wait for it (RFC 9112
 * section 9.6); later they have left: nothing else would show that while an answer, such as an event stream, is silent.
 */
export function followClientEnds(server: Server): void {
  server.on('connection', (socket: Socket) => socket.off('end', onClientEnd).on('end', onClientEnd));
}

function onClientEnd(this: Socket): void {
  const response = responseOf(this);
  if (response === undefined) return;
  if (response.headersSent && !response.writableEnded) response.destroy();
  else this.setKeepAlive(true, PROBE_MS);
}

/** Whether nobody waits for this answer any more: the client left, or its connection has had its last words. */
export function isAbandoned({ destroyed, req: { socket } }: ServerResponse): boolean {
  return destroyed || socket.destroyed || socket.writableEnded;
}

/** Ends the writing side now, and the connection when the client has ended its own or a moment has passed. */
export function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('end', () => socket.destroy());
  socket.once('close', () => clearTimeout(timer));
  resumeReading(socket);
  socket.end(() => {
    if (socket.readableEnded) socket.destroy();
  });
}
