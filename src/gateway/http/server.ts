/** The server that clients connect to: its limits and its time-outs. */
import { createServer as createHttpServer, type Server } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyServerFactoryHandler } from 'fastify';
import { handleClientError } from './broken.ts';
import { followClientEnds } from './lingering-close.ts';
import { answerHalfClosed } from './node-internals.ts';
import type { StallLimits } from './stalls.ts';
import { Turns } from './turns.ts';
import type { Upgrades } from './upgrades.ts';

export interface ListenSettings extends StallLimits {
  readonly trustedProxies: readonly string[];
  readonly maxConnections: number;
  readonly maxBodyBytes: number;
  readonly maxEventLoopDelayMs: number;
  readonly maxHeaderBytes: number;
  readonly maxHeaderFields: number;
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
  const app = Fastify({
    logger: false,
    rewriteUrl: () => '/',
    // Requests that arrive while it drains are served: the replica is still being taken out of rotation.
    return503OnClosing: false,
    serverFactory: (serve) => openServer(limits, serve),
    clientErrorHandler: (error, socket) => handleClientError(error, socket, baseUrl),
  });
  // Bodies stream through untouched: no method has one that Fastify would parse.
  for (const method of methods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  return app;
}

function openServer(limits: ListenSettings, serve: FastifyServerFactoryHandler): Server {
  const { headersTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(headersTimeoutMs, requestTimeoutMs);
  const turns = new Turns();
  const server = createHttpServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: shortestMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(MAX_LOOK_MS, Math.ceil(shortestMs / 4)),
    insecureHTTPParser: false,
    // Refused by `inspect`, as every other request is.
    requireHostHeader: false,
  });
  // Node would drop further fields, but its parser would still frame by them; `inspect` refuses above our own limit.
  server.maxHeadersCount = 0;
  answerHalfClosed(server);
  followClientEnds(server);
  // The 100 is sent when the upstream takes the body: a request that is refused gets its final status at once.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.on(event, (request, response) => turns.take(request, response, serve));
  }
  return server;
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
