/** The server that clients connect to, with its limits and time-outs. */
import { createServer as createHttpServer, METHODS, type Server } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyServerOptions, type RawServerDefault } from 'fastify';
import type { HeadLimits } from '../message/head/read-fields.ts';
import { ClientConnections, type ConnectionLimit } from './client-connections.ts';
import { ClientRequest } from './node/client-request.ts';
import { answerHalfClosed, keepIdleConnections } from './node/internals.ts';
import { turnOf } from './node/node-exchange.ts';
import { ParserFeeds, type Serve } from './node/request-feed.ts';
import type { StallLimits } from './stalls.ts';
import type { PortTls } from './tls.ts';
import { handleClientError, refuseUnread, type UnreadAnswer } from './unreadable.ts';

export interface ListenSettings extends StallLimits, HeadLimits {
  readonly trustedProxies: readonly string[];
  readonly maxConnections: number;
  readonly maxBodyBytes: number;
  readonly maxEventLoopDelayMs: number;
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** How often Node checks for connections past a time-out: a quarter of the shortest one, to keep the delay small. */
const MAX_LOOK_MS = 5_000;

/** A server of Fastify, and the connections of its clients. */
interface ClientServer {
  readonly app: FastifyInstance;
  readonly connections: ClientConnections;
}

/** A server without routes. Fastify sees every request as one for `/`; Weir matches its own canonical path. */
export function createServer(limits: ListenSettings, unread: UnreadAnswer, tls?: PortTls): ClientServer {
  const server = serveFastify(
    { limits, limit: { max: limits.maxConnections, beyond: 'refuse' }, unread, tls },
    {
      rewriteUrl: () => '/',
      // Requests that arrive while the server drains are served: load balancers are still removing the replica.
      return503OnClosing: false,
    },
  );
  // Every method has a route, and Fastify must not parse any body, because bodies are streamed.
  for (const method of METHODS) server.app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  return server;
}

/** How a server takes connections. */
interface ServerRole {
  readonly limits: ListenSettings;
  readonly limit: ConnectionLimit;
  readonly unread: UnreadAnswer;
  readonly tls: PortTls | undefined;
}

/** Fastify on a server of ours. */
export function serveFastify(role: ServerRole, options: FastifyServerOptions): ClientServer {
  const opened: ClientConnections[] = [];
  const app = Fastify({
    logger: false,
    ...options,
    serverFactory: (route) => {
      const connections = openServer(role, route);
      opened.push(connections);
      return connections.server as RawServerDefault;
    },
    clientErrorHandler: (error, socket) =>
      handleClientError(error, socket, opened[0]?.of(socket), role.unread),
  });
  const [connections] = opened;
  if (connections === undefined) throw new TypeError('Fastify made another server');
  return { app, connections };
}

const ROUTABLE: ReadonlySet<string | undefined> = new Set(METHODS);

/** Fastify never answers methods of RTSP, which Node's parser accepts. */
function serving(route: Serve, unread: UnreadAnswer): Serve {
  return (request, response) => {
    if (ROUTABLE.has(request.method)) route(request, response);
    else refuseUnread(turnOf(request).connection, unread);
  };
}

/** A server whose connections are read one request at a time. Unless something serves what the edge reads, Node's parser reads them. */
export function openServer({ limits, limit, unread, tls }: ServerRole, route: Serve): ClientConnections {
  const { headersTimeoutMs, requestTimeoutMs } = limits;
  const shortestMs = Math.min(headersTimeoutMs, requestTimeoutMs);
  const options = {
    IncomingMessage: ClientRequest,
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: shortestMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(MAX_LOOK_MS, Math.ceil(shortestMs / 4)),
    insecureHTTPParser: false,
    // `inspect` refuses it.
    requireHostHeader: false,
  };
  const server: Server =
    tls === undefined ? createHttpServer(options) : tls.createServer(options, headersTimeoutMs);
  // Node would drop further fields although its parser still uses them for framing; `inspect` enforces our own limit.
  server.maxHeadersCount = 0;
  answerHalfClosed(server);
  // `closeIdle` closes them.
  keepIdleConnections(server);
  return new ClientConnections(server, limits, limit, new ParserFeeds(server, serving(route, unread)));
}

/** @returns whether the event loop is so late that new requests are better refused, so that those in progress can finish */
export function watchLoad(
  app: FastifyInstance,
  maxEventLoopDelayMs: number,
  onOverload: (delayMs: number) => void,
): () => boolean {
  if (maxEventLoopDelayMs === 0) return () => false;
  const delay = new LoopDelay((fromMs, toMs) => {
    if (fromMs <= maxEventLoopDelayMs && toMs > maxEventLoopDelayMs) onOverload(toMs);
  });
  app.addHook('onClose', async () => delay.close());
  return () => delay.meanMs > maxEventLoopDelayMs;
}

/** How often idle connections are closed while the server shuts down. */
const SWEEP_MS = 50;

/** Stops accepting connections, gives requests in progress `graceMs` to finish, then aborts the others. */
export async function closeWithin({ app, connections }: ClientServer, graceMs: number): Promise<void> {
  connections.endKeepAlive();
  const sweep = setInterval(() => connections.closeIdle(), SWEEP_MS);
  const breakOff = setTimeout(() => connections.closeAll(), graceMs);
  await app.close();
  await connections.closed();
  clearInterval(sweep);
  clearTimeout(breakOff);
}

/** A delay of the event loop is how much too late the next look comes. */
const LOOK_MS = 100;
/** Delays are averaged over this time, or over the time between two looks if that is longer. */
const SPAN_MS = 1_000;
/** A gap of this length with hardly any CPU time: the process was stopped, by SIGSTOP or with its machine. */
const STOPPED_MS = 300;
const STOPPED_CPU_SHARE = 0.05;

const US_PER_MS = 1_000;

/**
 * Measures how late the event loop is. One long turn, such as a large collection on a busy machine, is not load, and the requests that came
 * in meanwhile can be served at once. So the lesser delay of the last two seconds counts. A process that was stopped has no load for that
 * reason either, so that time does not count. It counts if it happens again within a second, because a machine without memory or CPU time
 * for this process stops it again and again.
 */
class LoopDelay {
  /** The lesser of the means of the last two seconds. */
  meanMs = 0;
  #lastMeanMs = 0;
  #sumMs = 0;
  #looks = 0;
  #spanFromMs = performance.now();
  #lookedAtMs = performance.now();
  #cpuMs = cpuMs();
  #lastStopMs = Number.NEGATIVE_INFINITY;
  readonly #timer = setInterval(() => this.#look(), LOOK_MS).unref();
  readonly #onMean: (fromMs: number, toMs: number) => void;

  /** @param onMean called when there is a new mean */
  constructor(onMean: (fromMs: number, toMs: number) => void) {
    this.#onMean = onMean;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const nowMs = performance.now();
    const usedMs = cpuMs();
    const gapMs = nowMs - this.#lookedAtMs;
    if (this.#wasStopped(nowMs, gapMs, usedMs - this.#cpuMs)) {
      this.#spanFromMs += gapMs;
    } else {
      this.#sumMs += Math.max(0, gapMs - LOOK_MS);
      this.#looks += 1;
    }
    this.#lookedAtMs = nowMs;
    this.#cpuMs = usedMs;
    if (nowMs - this.#spanFromMs < SPAN_MS) return;
    const earlierMs = this.meanMs;
    const meanMs = this.#sumMs / this.#looks;
    this.meanMs = Math.min(this.#lastMeanMs, meanMs);
    this.#lastMeanMs = meanMs;
    this.#onMean(earlierMs, this.meanMs);
    this.#sumMs = 0;
    this.#looks = 0;
    this.#spanFromMs = nowMs;
  }

  #wasStopped(nowMs: number, gapMs: number, gapCpuMs: number): boolean {
    if (gapMs < STOPPED_MS || gapCpuMs > STOPPED_CPU_SHARE * gapMs) return false;
    const isAgain = nowMs - gapMs - this.#lastStopMs < SPAN_MS;
    this.#lastStopMs = nowMs;
    return !isAgain;
  }
}

/** Of all threads of this process. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / US_PER_MS;
}
