/**
 * The path of a request, in one direction: normalise, match, identify, authorise, charge, forward, respond. Each
 * stage is a file of its own and gives its value or a Refusal; only this file knows them all.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Directory, IdentitySource } from '../identity/identity.ts';
import type { Store } from '../store/store.ts';
import { writeAccessLine } from './access-log.ts';
import { authorise } from './authorise.ts';
import type { Buckets } from './buckets.ts';
import { charge } from './charge.ts';
import { forward, openUpstream, routeThroughProxy } from './forward.ts';
import { identify } from './identify.ts';
import { normalise } from './normalise.ts';
import { METHODS, type PriceList } from './operations.ts';
import { Refusal } from './problems.ts';
import { respond } from './respond.ts';
import type { Exchange } from './types.ts';
import { createUnlistedLog } from './unlisted-log.ts';

/** What a gateway is made of. Price list, identities and limits may change while it runs; the rest may not. */
export interface GatewayParts {
  readonly baseUrl: string;
  readonly upstreamUrl: string;
  readonly prices: PriceList;
  readonly identities: IdentitySource;
  readonly directory: Directory;
  readonly buckets: Buckets;
  readonly store: Store;
  /** What to do with a request that the store could not count. */
  readonly onStoreFailure: 'serve' | 'reject';
  readonly observer: GatewayObserver;
  readonly log: Logger;
  /** Whether each request gets its line in the log. */
  readonly accessLog: boolean;
}

/** Who counts what the gateway does. */
export interface GatewayObserver {
  /** A response was sent in full, or its client went away. */
  requestFinished(exchange: Exchange, status: number, totalMs: number): void;
  unlistedOperation(method: string): void;
}

declare module 'fastify' {
  interface FastifyRequest {
    exchange: Exchange | undefined;
  }
}

/** A request id that a client may choose (DESIGN: 1 to 128 of these), so that no log line can be forged with one. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** A gateway that is ready to listen; closing it closes the upstream's connections, not the store. */
export async function createGateway(parts: GatewayParts): Promise<FastifyInstance> {
  const upstream = openUpstream(parts.upstreamUrl);
  const noteUnlisted = createUnlistedLog(parts.log);
  // Weir matches its own canonical path; to Fastify every request is one for the route `/`.
  const app = Fastify({ logger: false, rewriteUrl: () => '/' });
  // Bodies stream through untouched: no method has one that Fastify would parse.
  for (const method of METHODS) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });

  app.decorateRequest('exchange', undefined);
  app.addHook('onRequest', (request, reply, done) => {
    const exchange = begin(request, reply, parts);
    request.exchange = exchange;
    admit(request.raw, exchange, parts, noteUnlisted).then((refusal) => {
      if (refusal === undefined) done();
      else refuse(reply, exchange, refusal, parts.baseUrl);
    }, done);
  });
  app.setErrorHandler((error, { exchange }, reply) => {
    parts.log.error({ err: error, requestId: exchange?.requestId }, 'the gateway failed');
    const refusal = new Refusal('ServiceUnavailable', 'The gateway could not handle this request.');
    if (exchange !== undefined) refuse(reply, exchange, refusal, parts.baseUrl);
  });
  app.addHook('onClose', () => upstream.pool.close());
  await routeThroughProxy(app, parts.upstreamUrl, (request, reply) => {
    if (request.exchange === undefined) return;
    reply.hijack();
    forward(upstream, request.raw, reply.raw, request.exchange, parts.baseUrl);
  });
  return app;
}

function begin({ raw }: FastifyRequest, reply: FastifyReply, parts: GatewayParts): Exchange {
  const wanted = raw.headers['x-request-id'];
  const requestId = typeof wanted === 'string' && SANE_REQUEST_ID.test(wanted) ? wanted : randomUUID();
  const exchange: Exchange = { requestId, method: raw.method ?? '', startedMs: performance.now() };
  const response = reply.raw;
  response.once('close', () => {
    const totalMs = performance.now() - exchange.startedMs;
    parts.observer.requestFinished(exchange, response.statusCode, totalMs);
    if (parts.accessLog) writeAccessLine(parts.log, exchange, response.statusCode, totalMs);
  });
  return exchange;
}

/** Runs the stages up to the charge; undefined when the request may be forwarded. */
async function admit(
  request: IncomingMessage & { originalUrl?: string },
  exchange: Exchange,
  parts: GatewayParts,
  noteUnlisted: (method: string, path: string) => void,
): Promise<Refusal | undefined> {
  const target = normalise(request.originalUrl ?? '');
  if (target instanceof Refusal) return target;
  exchange.target = target;

  const operation = parts.prices.find(exchange.method, target.path);
  if (operation === 'free') return undefined;
  if (operation instanceof Refusal) return operation;
  exchange.operation = operation;

  const identified = identify(parts.identities, request);
  const principal = identified instanceof Promise ? await identified : identified;
  if (principal instanceof Refusal) return principal;

  const authorised = authorise(parts.directory, principal, operation, serviceAccount(request));
  const caller = authorised instanceof Promise ? await authorised : authorised;
  if (caller instanceof Refusal) return caller;
  exchange.caller = caller;
  if (!operation.listed) {
    parts.observer.unlistedOperation(exchange.method);
    noteUnlisted(exchange.method, target.path);
  }

  const askedMs = performance.now();
  const charged = await charge(parts.store, parts.buckets, caller, operation);
  exchange.chargeMs = performance.now() - askedMs;
  exchange.charged = charged;
  if (charged.outcome === 'uncounted' && parts.onStoreFailure === 'reject') {
    return new Refusal('ServiceUnavailable', 'The request could not be counted.');
  }
  return charged.outcome === 'denied' ? charged.refusal : undefined;
}

function serviceAccount({ headers }: IncomingMessage): string | undefined {
  const named = headers['x-service-account'];
  return Array.isArray(named) ? named.join(', ') : named;
}

function refuse(reply: FastifyReply, exchange: Exchange, refusal: Refusal, baseUrl: string): void {
  reply.hijack();
  respond(reply.raw, exchange, refusal, baseUrl);
}
