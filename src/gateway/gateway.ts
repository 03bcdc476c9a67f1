/**
 * The life of a request. `PIPELINE` lists its stages in order, up to the upstream; `decide` runs those that are independent of
 * HTTP. Each stage has its own file, and only this file and decide.ts import them.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Awaitable, andThen } from '../domain/awaitable.ts';
import { decide } from './decide.ts';
import type { Gateway, GatewayDependencies } from './dependencies.ts';
import { type ForwardContext, forward } from './forward.ts';
import { brokenBy } from './http/broken.ts';
import { answerPreflight, isAnsweredPreflight } from './http/cors.ts';
import { fieldReader } from './http/credentials.ts';
import { TrustedProxies } from './http/forwarded.ts';
import { namedAccount } from './http/headers.ts';
import { hasBody, inspect } from './http/inspect.ts';
import { isAbandoned, isClosing } from './http/lingering-close.ts';
import { capConnections, shedLoad } from './http/overload.ts';
import { closeWithin, createServer } from './http/server.ts';
import { Stalls } from './http/stalls.ts';
import { Upgrades } from './http/upgrades.ts';
import { beginRequest } from './log/begin-request.ts';
import { createUnlistedLog } from './log/unlisted-log.ts';
import { METHODS, refuseMethod } from './match.ts';
import { normalise } from './normalise.ts';
import { Refusal } from './problems.ts';
import type { RequestContext, Target } from './request-context.ts';
import { respond } from './respond.ts';
import { runStages, type Stage } from './stages.ts';
import { servedUrl } from './tls/server.ts';
import { UPSTREAM_BUSY } from './upstream/failures.ts';
import { isCrowdedOut } from './upstream/relay.ts';
import { Upstreams } from './upstream/upstreams.ts';
import { validate } from './validate.ts';

/** The state of one request: what the stages read, and the context that they write to. */
interface Passage {
  readonly rawTarget: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly context: RequestContext;
  readonly shared: Shared;
}

/** What all requests share. */
interface Shared extends GatewayDependencies {
  readonly upstreams: Upstreams;
  readonly trusted: TrustedProxies;
  readonly noteUnlisted: (method: string, path: string) => void;
}

/** The stages before the upstream, in their order: normalise, match to charge (`decide`), validate. */
const PIPELINE: readonly Stage<Passage>[] = [
  normaliseTarget,
  awaitFirstChunk,
  requireFreeUpstream,
  decideRequest,
  holdBackUncharged,
  validateRequest,
];

/** Creates the server and runs the stages for each of its requests. */
export async function createGateway(dependencies: GatewayDependencies): Promise<Gateway> {
  const { baseUrl, cors, listen, tls, log } = dependencies;
  const trusted = new TrustedProxies(listen.trustedProxies);
  const upstreams = new Upstreams(dependencies.upstream, trusted);
  const app = createServer(listen, METHODS, baseUrl, tls);
  const upgrades = new Upgrades(app);
  const stalls = new Stalls(listen);
  stalls.watchServer(app.server);
  const surplus = capConnections(app.server, listen.maxConnections);
  const shared: Shared = { ...dependencies, upstreams, trusted, noteUnlisted: createUnlistedLog(log) };

  app.decorateRequest('context', undefined);
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = request;
    if (isClosing(raw.socket)) {
      reply.hijack();
      return;
    }
    const context = beginRequest(raw, reply.raw, shared);
    request.context = context;
    const refusal = surplus(raw.socket) ?? brokenBy(raw) ?? inspect(raw, listen);
    if (refusal !== undefined) refuse(reply, context, refusal, baseUrl);
    else if (isAnsweredPreflight(cors, raw)) {
      reply.hijack();
      answerPreflight(raw, reply.raw, context, METHODS, cors);
    } else done();
  });
  await shedLoad(app, listen.maxEventLoopDelayMs, ({ context }, reply, refusal) => {
    if (context !== undefined) refuse(reply, context, refusal, baseUrl);
  });
  app.addHook('onRequest', ({ raw, originalUrl, context }, reply, done) => {
    if (context === undefined) return;
    const passage = { rawTarget: originalUrl, request: raw, response: reply.raw, context, shared };
    const verdict = andThen(runStages(PIPELINE, passage), (refusal) => {
      if (refusal === undefined) done();
      else refuse(reply, context, refusal, baseUrl);
    });
    if (verdict instanceof Promise) verdict.catch(done);
  });
  app.setErrorHandler((error, { context }, reply) => {
    log.error({ err: error, requestId: context?.requestId }, 'the gateway failed');
    const refusal = new Refusal('ServiceUnavailable', 'The gateway could not handle this request.');
    if (context !== undefined) refuse(reply, context, refusal, baseUrl);
  });
  const { credentials } = dependencies;
  const proxied = { trusted, upgrades, stalls, baseUrl, maxBodyBytes: listen.maxBodyBytes, credentials };
  await registerProxy(app, dependencies.upstream.url, upstreams, proxied);
  return {
    listen: async ({ host, port }) => servedUrl(await app.listen({ host, port }), tls),
    async close(graceMs) {
      await closeWithin(app, upgrades, graceMs);
      upstreams.destroy();
    },
  };
}

/**
 * Registers @fastify/http-proxy, which provides the route and its life cycle. Its documented `preHandler` option forwards the request
 * and hijacks the reply, so the plugin's own handler never runs: it would build four URLs per request, turn errors of the
 * upstream into 500s, retry GETs and copy every chunk through two more streams.
 */
async function registerProxy(
  app: FastifyInstance,
  upstreamUrl: string,
  upstreams: Upstreams,
  proxied: ForwardContext,
): Promise<void> {
  const preHandler = (
    { raw, context }: FastifyRequest,
    reply: FastifyReply,
    done: (error: Error) => void,
  ) => {
    try {
      if (context === undefined) throw new TypeError('the request was never begun');
      const upstream = upstreams.find(targetOf(context).path);
      const refusal = forward(upstream, raw, reply.raw, context, proxied);
      // Hijack after `forward`: if it throws, the error handler can still reply.
      if (refusal === undefined) reply.hijack();
      else refuse(reply, context, refusal, proxied.baseUrl);
    } catch (error) {
      done(error as Error);
    }
  };
  await app.register(httpProxy, { upstream: upstreamUrl, disableRequestLogging: true, preHandler });
}

function refuse(reply: FastifyReply, context: RequestContext, refusal: Refusal, baseUrl: string): void {
  reply.hijack();
  respond(reply.raw, context, refusal, baseUrl);
}

function normaliseTarget({ context, rawTarget, shared }: Passage) {
  // The target of a CONNECT is not a path (RFC 9112 section 3.2.3).
  if (context.method === 'CONNECT') return refuseMethod();
  const { operations, upstream } = shared;
  const target = normalise(rawTarget, upstream.pathProfile, (path) =>
    operations.declaresSlash(context.method, path),
  );
  if (target instanceof Refusal) return target;
  context.target = target;
  return undefined;
}

/** Yields one tick so that a malformed first chunk is rejected before charging. */
function awaitFirstChunk({ request }: Passage) {
  return request.headers['transfer-encoding'] === undefined ? undefined : setImmediate(undefined);
}

/** Comes before the charge, so that a request that cannot be served costs nothing. */
function requireFreeUpstream({ context, shared }: Passage) {
  return shared.upstreams.find(targetOf(context).path).hasRoom ? undefined : UPSTREAM_BUSY;
}

const ABANDONED = new Refusal('BadRequest', 'The request was aborted.', { closes: true });

function decideRequest({ request, response, context, shared }: Passage): Awaitable<Refusal | undefined> {
  const { method } = context;
  const { path } = targetOf(context);
  const question = {
    method,
    path,
    authorization: request.headers.authorization,
    field: fieldReader(request.rawHeaders),
    client: () => shared.trusted.clientOf(request),
    namedAccount: namedAccount(request),
    cancelled: () =>
      brokenBy(request) ?? (isAbandoned(response) ? ABANDONED : undefined) ?? crowdedOut(context, shared),
  };
  return andThen(decide(question, context, shared), (refusal) => {
    // Only for authenticated callers, so that a stranger cannot fill the log.
    if (context.caller !== undefined && context.operation?.listed === false) {
      shared.observer.unlistedOperation(method);
      shared.noteUnlisted(method, path);
    }
    return refusal;
  });
}

const OPTIONS_BODY = new Refusal('BadRequest', 'An OPTIONS request may have no body here.');

/** Ends OPTIONS requests and free operations that have no share left, before the body is read. */
function holdBackUncharged({ request, context, shared }: Passage) {
  const { operation } = context;
  if (operation !== undefined && operation.cost > 0) return undefined;
  if (operation === undefined && hasBody(request)) return OPTIONS_BODY;
  return crowdedOut(context, shared);
}

/** Requests without a caller may use only a share of the upstream's connections. `forward` checks once more. */
function crowdedOut(context: RequestContext, { upstreams }: Shared): Refusal | undefined {
  return isCrowdedOut(upstreams.find(targetOf(context).path), context) ? UPSTREAM_BUSY : undefined;
}

/** Validates the request against its operation. A body that was read for this is kept, to be forwarded. */
function validateRequest({ request, response, context }: Passage) {
  if (context.operation === undefined) return undefined;
  return andThen(validate(context.operation, targetOf(context), response), (validated) => {
    if (validated instanceof Refusal) return validated;
    if (validated !== undefined) context.body = validated;
    return brokenBy(request);
  });
}

function targetOf(context: RequestContext): Target {
  if (context.target === undefined) throw new TypeError('the request has not been normalised');
  return context.target;
}
