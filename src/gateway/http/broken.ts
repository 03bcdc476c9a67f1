/**
 * Handles messages that the parser rejects or that do not arrive in time. The response to an earlier request on the connection is
 * always sent first (RFC 9112 section 9.3.2); nothing after the broken bytes is executed.
 */
import { randomUUID } from 'node:crypto';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { problemBody, Refusal } from '../problems.ts';
import { countBuffer } from './buffer-garbage.ts';
import { closeBehind, closeNow, closeWith, isClosing, linger } from './lingering-close.ts';
import { requestOf, responseOf } from './node-internals.ts';
import { isEnded } from './whole-response.ts';

const broken = new WeakMap<object, Refusal>();

/** Why the rest of this request will not arrive; undefined if it is complete or still arriving. */
export function brokenBy(request: IncomingMessage): Refusal | undefined {
  return broken.get(request);
}

/** Records why the rest of a request will not arrive, and emits `broken` for the reader of its body. */
export function markBroken(request: Pick<IncomingMessage, 'emit'>, refusal: Refusal): void {
  if (broken.has(request)) return;
  broken.set(request, refusal);
  request.emit('broken');
}

/** An error of Node's `clientError` event. */
interface ClientError extends NodeJS.ErrnoException {
  /** The bytes that the parser could not read, in a Buffer; Fastify declares another type. */
  readonly rawPacket?: unknown;
}

/** Handles an error of the parser, of its time-outs or of the socket. */
export function handleClientError(error: ClientError, socket: Socket, baseUrl: string): void {
  const { code = '', rawPacket } = error;
  // Bytes that arrive after the last request or response are dropped.
  if (code === 'HPE_CLOSED_CONNECTION' || socket.writableEnded || isClosing(socket)) {
    if (Buffer.isBuffer(rawPacket)) countBuffer(rawPacket);
    return;
  }
  if (!code.startsWith('HPE_') && code !== 'ERR_HTTP_REQUEST_TIMEOUT') {
    socket.destroy();
    return;
  }
  const request = requestOf(socket);
  if (request !== undefined && !request.complete) breakRequest(request, socket, code);
  else answerOrClose(socket, code, baseUrl);
}

/** An error within a request's body is the response to that request, unless it already has one. */
function breakRequest(request: IncomingMessage, socket: Socket, code: string): void {
  const response = responseOf(socket);
  if (response === undefined) linger(socket);
  else if (response.req !== request || !response.headersSent) markBroken(request, refusalOf(code));
  else if (isEnded(response)) closeBehind(response);
  else socket.destroy();
}

const ahead = new WeakSet<Socket>();

/**
 * Says that the bytes that this connection's parser reads in this turn arrived before the last response was sent. If they are
 * broken, they end the connection without another response, as they would have if they had been read on arrival.
 */
export function arrivedAhead(socket: Socket): void {
  ahead.add(socket);
  setImmediate(() => ahead.delete(socket));
}

/** An error between requests or within a header: there is no request object to respond to. */
function answerOrClose(socket: Socket, code: string, baseUrl: string): void {
  const response = responseOf(socket);
  if (response !== undefined) {
    closeBehind(response);
    return;
  }
  if (ahead.has(socket)) {
    closeNow(socket);
    return;
  }
  const refusal = refusalOf(code);
  const requestId = randomUUID();
  const { text, bytes } = problemBody(refusal, requestId, baseUrl);
  closeWith(
    socket,
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n` +
      `X-Request-Id: ${requestId}\r\nConnection: close\r\n` +
      `Content-Type: application/problem+json\r\nContent-Length: ${bytes}\r\n\r\n${text}`,
  );
}

export const TOO_SLOW = new Refusal('BadRequest', 'The request took too long to arrive.', {
  status: 408,
  closes: true,
});

export const NOT_HTTP = new Refusal('BadRequest', 'The request is not valid HTTP/1.1.', { closes: true });

function refusalOf(code: string): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('BadRequest', 'The request header is too long.', { status: 431, closes: true });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return TOO_SLOW;
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('PayloadTooLarge', 'The chunk extensions are too long.', { closes: true });
    default:
      return NOT_HTTP;
  }
}
