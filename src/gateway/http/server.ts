/** The server that clients connect to: its limits and its time-outs, and what it says to what is not HTTP. */
import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type ConnectionError, type FastifyInstance } from 'fastify';
import { problemBody, Refusal } from '../problems.ts';
import { closeWith, isClosing } from './closing.ts';
import type { Upgrades } from './upgrades.ts';

export interface ListenSettings {
  readonly trustedProxies: readonly string[];
  readonly maxConnections: number;
  readonly maxBodyBytes: number;
  readonly maxEventLoopDelayMs: number;
  readonly maxHeaderBytes: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** How often Node looks for connections that are out of time; a quarter of the shortest keeps the lateness small. */
const MAX_LOOK_MS = 5_000;

/** A server without routes. To Fastify every request is one for the route `/`: Weir matches its own canonical path. */
export function createServer(
  limits: ListenSettings,
  methods: readonly string[],
  baseUrl: string,
): FastifyInstance {
  const { headersTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(headersTimeoutMs, requestTimeoutMs);
  const app = Fastify({
    logger: false,
    rewriteUrl: () => '/',
    // Requests that arrive while it drains are served: the replica is still being taken out of rotation.
    return503OnClosing: false,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    requestTimeout: requestTimeoutMs,
    http: {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: shortestMs,
      connectionsCheckingInterval: Math.min(MAX_LOOK_MS, Math.ceil(shortestMs / 4)),
      insecureHTTPParser: false,
    },
    clientErrorHandler: (error, socket) => answerBroken(error, socket, baseUrl),
  });
  // Bodies stream through untouched: no method has one that Fastify would parse.
  for (const method of methods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  // The 100 is sent when the upstream takes the body: a request that is refused gets its final status at once.
  app.server.on('checkContinue', (request, response) => app.routing(request, response));
  return app;
}

/** How often connections that fell idle while the server closes are closed. */
const SWEEP_MS = 50;

/** Takes no further connections, lets requests under way finish for `graceMs`, then breaks off the rest. */
export async function closeWithin(app: FastifyInstance, upgrades: Upgrades, graceMs: number): Promise<void> {
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS);
  const breakOff = setTimeout(() => {
    upgrades.breakOff();
    app.server.closeAllConnections();
  }, graceMs);
  await app.close();
  clearInterval(sweep);
  clearTimeout(breakOff);
}

/** A request that ends in the parser: it never became one, so it has no exchange, no log line and no charge. */
function answerBroken(error: ConnectionError, socket: Socket, baseUrl: string): void {
  // Its last words are on their way; what follows them is not read. The client itself may have said that they are.
  if (socket.writableEnded || error.code === 'HPE_CLOSED_CONNECTION') return;
  if (error.code === 'ECONNRESET' || isClosing(socket) || hasAnswerBegun(socket)) {
    socket.destroy();
    return;
  }
  const refusal = refusalOf(error.code);
  const requestId = randomUUID();
  const { text, bytes } = problemBody(refusal, requestId, baseUrl);
  closeWith(
    socket,
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n` +
      `X-Request-Id: ${requestId}\r\nConnection: close\r\n` +
      `Content-Type: application/problem+json\r\nContent-Length: ${bytes}\r\n\r\n${text}`,
  );
}

function refusalOf(code: string): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Refusal('BadRequest', 'The request header is too long.', { status: 431 });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Refusal('BadRequest', 'The request took too long to arrive.', { status: 408 });
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new Refusal('PayloadTooLarge', 'The chunk extensions are too long.');
    default:
      return new Refusal('BadRequest', 'The request is not valid HTTP/1.1.');
  }
}

/** What Node hangs on a socket: the response that it is busy with, and the request that its parser is reading. */
interface BusySocket extends Socket {
  readonly _httpMessage?: { readonly headersSent: boolean } | null;
  readonly parser?: { readonly incoming: { readonly complete: boolean } | null } | null;
}

/** A second answer to one request would be taken for the answer to the next. */
function hasAnswerBegun({ _httpMessage: response, parser }: BusySocket): boolean {
  const request = parser?.incoming;
  return response?.headersSent ?? (request !== null && request !== undefined && !request.complete);
}
