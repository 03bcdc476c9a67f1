import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { PlatformError, problemBody } from './problems.ts';
import { requestIdFrom } from './request-id.ts';

/** Answers a request that cannot be parsed, or did not arrive in time, and closes its connection. */
export function answerUnreadable(baseUrl: string): (error: NodeJS.ErrnoException, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
    const refusal = toRefusal(error.code);
    const requestId = randomUUID();
    const body = JSON.stringify(problemBody(refusal, baseUrl, requestId));
    socket.end(
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n` +
        `X-Request-Id: ${requestId}\r\nConnection: close\r\n` +
        `Content-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  };
}

function toRefusal(code: string | undefined): PlatformError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new PlatformError(431, 'BadRequest', 'The request header is too long.');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new PlatformError(408, 'BadRequest', 'The request took too long to arrive.');
  return new PlatformError(400, 'BadRequest', 'The request is not valid HTTP/1.1.');
}

/** Refuses expectations other than 100-continue, which Node answers without a body. */
export function refuseExpectations(server: Server, baseUrl: string): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const requestId = requestIdFrom(request.headers['x-request-id']);
    const refusal = new PlatformError(417, 'BadRequest', 'The only supported expectation is 100-continue.');
    const body = JSON.stringify(problemBody(refusal, baseUrl, requestId));
    response.writeHead(417, {
      'x-request-id': requestId,
      'content-type': 'application/problem+json',
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    });
    response.end(body);
  });
}
