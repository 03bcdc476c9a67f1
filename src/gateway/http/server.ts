/** The server that clients connect to, with its limits and time-outs. */
import { createServer as createHttpServer, type Server } from 'node:http';
import Fastify, { type FastifyInstance } from 'fastify';
import { Edge } from '../edge/edge.ts';
import type { PortTls } from '../tls/server.ts';
import { handleClientError } from './broken.ts';
import { followClientEnds } from './lingering-close.ts';
import { answerHalfClosed } from './node-internals.ts';
import type { StallLimits } from './stalls.ts';
import { type Serve, Turns } from './turns.ts';
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

/** How often Node checks for connections past a time-out: a quarter of the shortest one, to keep the delay small. */
const MAX_LOOK_MS = 5_000;

/** A server without routes. Fastify sees every request as one for `/`; Weir matches its own canonical path. */
export function createServer(
  limits: ListenSettings,
  methods: readonly string[],
  baseUrl: string,
  tls?: PortTls,
): FastifyInstance {
  const app = Fastify({
    logger: false,
    rewriteUrl: () => '/',
    // Requests that arrive while the server drains are served: load balancers are still removing the replica.
    return503OnClosing: false,
    serverFactory: (serve) => openServer(limits, serve, tls),
    clientErrorHandler: (error, socket) => handleClientError(error, socket, baseUrl),
  });
  // Fastify must not parse any body, because bodies are streamed.
  for (const method of methods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  return app;
}

/** Node's server, with the short way of plain requests in front. */
function openServer(limits: ListenSettings, serve: Serve, tls: PortTls | undefined): Server {
  const server = openNodeServer(limits, serve, tls);
  new Edge(server, limits, serve);
  return server;
}

/** A server that reads every request with Node's parser. */
export function openNodeServer(limits: ListenSettings, serve: Serve, tls?: PortTls): Server {
  const { headersTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(headersTimeoutMs, requestTimeoutMs);
  const turns = new Turns();
  const options = {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: shortestMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(MAX_LOOK_MS, Math.ceil(shortestMs / 4)),
    insecureHTTPParser: false,
    // `inspect` refuses it.
    requireHostHeader: false,
  };
  const server = tls === undefined ? createHttpServer(options) : tls.createServer(options, headersTimeoutMs);
  // Node would drop further fields although its parser still uses them for framing; `inspect` enforces our own limit.
  server.maxHeadersCount = 0;
  answerHalfClosed(server);
  followClientEnds(server);
  // The 100 is sent once the upstream accepts the body, so a refused request gets its final status at once.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.on(event, (request, response) => turns.take(request, response, serve));
  }
  return server;
}

/** How often idle connections are closed while the server shuts down. */
const SWEEP_MS = 50;

/** Stops accepting connections, gives requests in progress `graceMs` to finish, then aborts the others. */
export async function closeWithin(
  app: FastifyInstance,
  upgrades: Pick<Upgrades, 'breakOff'>,
  graceMs: number,
): Promise<void> {
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS);
  const breakOff = setTimeout(() => {
    upgrades.breakOff();
    app.server.closeAllConnections();
  }, graceMs);
  await app.close();
  clearInterval(sweep);
  clearTimeout(breakOff);
}
