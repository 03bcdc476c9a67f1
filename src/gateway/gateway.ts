/**
 * The path of a request, in one direction: normalise, match, identify, authorise, charge, validate, forward,
 * respond. Each stage is a file of its own and gives its value or a Refusal; only this file knows them all.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { FastifyReply } from 'fastify';
import { type Awaitable, andThen } from '../domain/awaitable.ts';
import type { Caller } from '../domain/caller.ts';
import { authorise } from './authorise.ts';
import { charge } from './charge.ts';
import { forward, routeThroughProxy } from './forward.ts';
import { brokenBy } from './http/broken.ts';
import { isAbandoned, isClosing } from './http/closing.ts';
import { TrustedProxies } from './http/forwarded.ts';
import { hasBody, inspect } from './http/inspect.ts';
import { capConnections, shedLoad } from './http/overload.ts';
import { closeWithin, createServer } from './http/server.ts';
import { Stalls } from './http/stalls.ts';
import { Upgrades } from './http/upgrades.ts';
import { identify } from './identify.ts';
import { beginExchange } from './log/exchange.ts';
import { createUnlistedLog } from './log/unlisted-log.ts';
import { normalise } from './normalise.ts';
import { METHODS, refuseMethod } from './operations.ts';
import type { Gateway, GatewayParts } from './parts.ts';
import { Refusal, UNCOUNTED } from './problems.ts';
import { respond } from './respond.ts';
import type { Charged, Exchange, Operation, Target } from './types.ts';
import { type Upstream, Upstreams } from './upstream/upstreams.ts';
import { validate } from './validate.ts';

/** Puts the stages behind one server. */
export async function createGateway(parts: GatewayParts): Promise<Gateway> {
  const { baseUrl, listen } = parts;
  const upstreams = new Upstreams(parts.upstream);
  const app = createServer(listen, METHODS, baseUrl);
  const trusted = new TrustedProxies(listen.trustedProxies);
  const upgrades = new Upgrades(app);
  const stalls = new Stalls(listen);
  const context = { trusted, upgrades, stalls, baseUrl, maxBodyBytes: listen.maxBodyBytes };
  const surplus = capConnections(app.server, listen.maxConnections);
  stalls.watchServer(app.server);
  const stages = { ...parts, upstreams, noteUnlisted: createUnlistedLog(parts.log) };

  app.decorateRequest('exchange', undefined);
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request;
    if (isClosing(raw.socket)) {
      reply.hijack();
      return;
    }
    const exchange = beginExchange(raw, reply.raw, parts);
    request.exchange = exchange;
    const refusal = surplus(raw.socket) ?? brokenBy(raw) ?? inspect(raw, listen);
    if (refusal === undefined) done();
    else refuse(reply, exchange, refusal, baseUrl);
  });
  await shedLoad(app, listen.maxEventLoopDelayMs, ({ exchange }, reply, refusal) => {
    if (exchange !== undefined) refuse(reply, exchange, refusal, baseUrl);
  });
  app.addHook('onRequest', ({ originalUrl, exchange }, reply, done) => {
    if (exchange === undefined) return;
    const goOn = (refusal: Refusal | undefined) => {
      if (refusal === undefined) done();
      else refuse(reply, exchange, refusal, baseUrl);
    };
    const verdict = admit({ response: reply.raw, exchange, stages }, originalUrl);
    if (verdict instanceof Promise) verdict.then(goOn, done);
    else goOn(verdict);
  });
  app.setErrorHandler((error, { exchange }, reply) => {
    parts.log.error({ err: error, requestId: exchange?.requestId }, 'the gateway failed');
    const refusal = new Refusal('ServiceUnavailable', 'The gateway could not handle this request.');
    if (exchange !== undefined) refuse(reply, exchange, refusal, baseUrl);
  });
  await routeThroughProxy(app, parts.upstream.url, ({ raw, exchange }, reply) => {
    if (exchange?.target === undefined) return;
    forward(upstreams.find(exchange.target.path), raw, reply.raw, exchange, context);
    // Behind it, so that what it throws is still answered.
    reply.hijack();
  });
  return {
    listen: ({ host, port }) => app.listen({ host, port }),
    async close(graceMs) {
      await closeWithin(app, upgrades, graceMs);
      await upstreams.destroy();
    },
  };
}

function refuse(reply: FastifyReply, exchange: Exchange, refusal: Refusal, baseUrl: string): void {
  reply.hijack();
  respond(reply.raw, exchange, refusal, baseUrl);
}

/** A chunk that came with the header may be broken: a turn later that is known, before anything is spent. */
function isChunked({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined;
}

/** A request whose client left before anything was spent on it. */
const ABANDONED = new Refusal('BadRequest', 'The request broke off.', { closes: true });
const CONNECT = 'CONNECT';
const OPTIONS_BODY = new Refusal('BadRequest', 'An OPTIONS request may have no body here.');
const UPSTREAM_BUSY = new Refusal('ServiceUnavailable', 'The service behind the gateway is too busy.');

/** What the stages up to the charge share. */
interface Stages extends GatewayParts {
  readonly upstreams: Upstreams;
  readonly noteUnlisted: (method: string, path: string) => void;
}

/** One request on its way through the stages. */
interface Passage {
  readonly response: ServerResponse;
  readonly exchange: Exchange;
  readonly stages: Stages;
}

/** Why the request goes no further, or undefined; at once where no stage has to wait. */
type Verdict = Awaitable<Refusal | undefined>;

/** Runs the stages before the upstream; undefined when the request may be forwarded. */
function admit(passage: Passage, rawTarget: string): Verdict {
  const { response, exchange, stages } = passage;
  // Its target is no path (RFC 9112 section 3.2.3).
  if (exchange.method === CONNECT) return refuseMethod();
  const target = normalise(rawTarget, stages.upstream.pathProfile);
  if (target instanceof Refusal) return target;
  exchange.target = target;
  return isChunked(response.req) ? setImmediate().then(() => price(passage, target)) : price(passage, target);
}

function price(passage: Passage, target: Target): Verdict {
  const { response, exchange, stages } = passage;
  const operation = stages.prices.find(exchange.method, target.path);
  if (operation instanceof Refusal) return operation;
  const upstream = stages.upstreams.find(target.path);
  if (!upstream.hasRoom) return UPSTREAM_BUSY;
  if (operation === 'free') return admitFree(response.req, upstream);
  exchange.operation = operation;
  return andThen(callerOf(response.req, operation, stages), (caller) =>
    spend(passage, target, operation, caller),
  );
}

/** Nobody is charged for it, so it may hold little of the upstream, and only as long as the upstream takes. */
function admitFree(request: IncomingMessage, upstream: Upstream): Refusal | undefined {
  if (hasBody(request)) return OPTIONS_BODY;
  return upstream.hasRoomForUnauthenticated ? undefined : UPSTREAM_BUSY;
}

/** Identifies and authorises; at once where everything about the caller is known already. */
function callerOf(
  request: IncomingMessage,
  operation: Operation,
  { identities, directory }: Stages,
): Awaitable<Caller | Refusal> {
  const named = serviceAccount(request);
  return andThen(identify(identities, request.headers.authorization), (principal) =>
    principal instanceof Refusal ? principal : authorise(directory, principal, operation, named),
  );
}

function spend(passage: Passage, target: Target, operation: Operation, caller: Caller | Refusal): Verdict {
  if (caller instanceof Refusal) return caller;
  const { response, exchange, stages } = passage;
  exchange.caller = caller;
  if (!operation.listed) {
    stages.observer.unlistedOperation(exchange.method);
    stages.noteUnlisted(exchange.method, target.path);
  }
  const broken = brokenBy(response.req);
  if (broken !== undefined) return broken;
  if (isAbandoned(response)) return ABANDONED;
  const askedMs = performance.now();
  exchange.chargeAskedMs = askedMs;
  const goOn = (charged: Charged) => {
    exchange.chargeMs = performance.now() - askedMs;
    exchange.charged = charged;
    if (charged.outcome === 'denied') return charged.refusal;
    if (charged.outcome === 'uncounted' && stages.onStoreFailure === 'reject') return UNCOUNTED;
    return hold(passage, target, operation);
  };
  return andThen(charge(stages.store, stages.buckets, caller, operation), goOn);
}

/** Holds the request against its document; a body that had to be read for that is kept for the upstream. */
function hold({ response, exchange }: Passage, target: Target, operation: Operation): Verdict {
  return andThen(validate(operation, target, response), (validated) => {
    if (validated instanceof Refusal) return validated;
    if (validated !== undefined) exchange.body = validated;
    return brokenBy(response.req);
  });
}

function serviceAccount({ headers }: IncomingMessage): string | undefined {
  const named = headers['x-service-account'];
  return Array.isArray(named) ? named.join(', ') : named;
}
