/**
 * Handles messages that the parser rejects or that do not arrive in time. The response to an earlier request on the connection is
 * always sent first (RFC 9112 section 9.3.2); nothing after the broken bytes is executed.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { problemBody, Refusal } from '../../domain/problems.ts';
import { countBuffer } from '../message/buffer-garbage.ts';
import { FieldLines } from '../message/head/field-lines.ts';
import { statusLine } from '../message/head/response-head.ts';
import type { ClientConnection, Turn } from './client-connection.ts';

/** What the answers to unreadable bytes have in common. */
export interface UnreadAnswer {
  readonly baseUrl: string;
  /** Further field lines. */
  readonly lines: string;
}

/**
 * Handles an error of the parser, of its time-outs or of the socket.
 *
 * @param error of Node's `clientError` event. `rawPacket`: the bytes that the parser could not read, in a Buffer; Fastify declares another
 *   type
 */
export function handleClientError(
  error: NodeJS.ErrnoException & { readonly rawPacket?: unknown },
  socket: Socket,
  connection: ClientConnection | undefined,
  answer: UnreadAnswer,
): void {
  const { code = '', rawPacket } = error;
  // Bytes that arrive after the last request or response are dropped.
  if (code === 'HPE_CLOSED_CONNECTION' || socket.writableEnded || isPastLast(connection)) {
    if (Buffer.isBuffer(rawPacket)) countBuffer(rawPacket);
    return;
  }
  const isOfRequest = code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT';
  if (connection === undefined || !isOfRequest) {
    socket.destroy();
    return;
  }
  const { turn } = connection;
  if (turn !== undefined && !turn.isComplete) breakTurn(connection, turn, refusalOf(code));
  else if (connection.isAnswering) turn?.makeLast();
  else if (connection.isReadingAhead) connection.closeNow();
  // Between requests or within a header there is no request to respond to.
  else refuseUnread(connection, answer, refusalOf(code));
}

/** Whether nothing more of a connection is read. The last response may begin before its request has arrived whole. */
function isPastLast(connection: ClientConnection | undefined): boolean {
  if (connection?.isClosing !== true) return false;
  const { turn } = connection;
  return turn === undefined || turn.isComplete || turn.isAnswered;
}

/** An error within a request's body is the response to that request, unless it already has one. */
export function breakTurn(connection: ClientConnection, turn: Turn, refusal: Refusal): void {
  if (turn.isAnswered) connection.closeNow();
  else if (turn.isComplete) turn.makeLast();
  else if (!turn.hasBegun) turn.breakOff(refusal);
  else if (turn.isEnded) turn.makeLast();
  else connection.socket.destroy();
}

/** Answers bytes that are no request of HTTP, and closes the connection. */
export function refuseUnread(
  connection: ClientConnection,
  { baseUrl, lines }: UnreadAnswer,
  refusal: Refusal = NOT_HTTP,
): void {
  const requestId = randomUUID();
  const { text, bytes } = problemBody(refusal, requestId, baseUrl);
  const own = FieldLines.of(['X-Request-Id', requestId, 'Connection', 'close']).text;
  const ofBody = FieldLines.of([
    'Content-Type',
    'application/problem+json',
    'Content-Length',
    `${bytes}`,
  ]).text;
  connection.closeWith(`${statusLine(refusal.status)}${own}${lines}${ofBody}\r\n${text}`);
}

export const TOO_SLOW = new Refusal('BadRequest', 'The request took too long to arrive.', {
  status: 408,
  closes: true,
});

export const NOT_HTTP = new Refusal('BadRequest', 'The request is not valid HTTP/1.1.', { closes: true });

function refusalOf(code: string): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('BadRequest', 'The request line and its headers are too long.', {
        status: 431,
        closes: true,
      });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return TOO_SLOW;
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('PayloadTooLarge', 'The chunk extensions are too long.', { closes: true });
    default:
      return NOT_HTTP;
  }
}
