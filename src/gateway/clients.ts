/** The port for clients: `STAGES` is the life of each of its requests. */
import { setImmediate } from 'node:timers/promises';
import httpProxy from '@fastify/http-proxy';
import { andThen } from '../domain/awaitable.ts';
import { Refusal, TUNNELS_BUSY } from '../domain/problems.ts';
import { addPreflight, isAnsweredPreflight, linesForAnyone } from '../http/message/fields/cors.ts';
import { TrustedProxies } from '../http/message/fields/forwarded.ts';
import { inspect } from '../http/message/fields/inspect.ts';
import { FieldLines } from '../http/message/head/field-lines.ts';
import { serveUpgrades } from '../http/server/node/upgrades.ts';
import { closeWithin, createServer, watchLoad } from '../http/server/server.ts';
import { servedUrl } from '../http/server/tls.ts';
import {
  CHARGE_STAGES,
  isFree,
  matchOperation,
  refuseBlockedAddress,
  UNBLOCKED_STAGES,
} from '../stages/decide.ts';
import { METHODS, refuseMethod } from '../stages/match.ts';
import { reserve } from '../stages/reserve.ts';
import { addGatewayFields, respond } from '../stages/respond.ts';
import { validate } from '../stages/validate.ts';
import type { Gateway, GatewayDependencies } from './dependencies.ts';
import {
  ABANDONED,
  Entrance,
  normaliseTarget,
  type PortDependencies,
  type PortRequest,
  type PortStage,
  refuseUnreadable,
  shedLoad,
  warnOf,
} from './entrance.ts';
import { settleResponse } from './response-cost/settle-response.ts';
import { forward } from './upstream/forward.ts';
import { crowdedOut } from './upstream/relay.ts';
import { type Upstream, Upstreams } from './upstream/upstreams.ts';
import { OWN_USAGE, OwnUsage } from './usage/own-usage.ts';

/** What the stages share. */
interface Shared extends PortDependencies {
  readonly upstreams: Upstreams;
  /** Undefined where callers cannot ask for their own limits. */
  readonly ownUsage: OwnUsage | undefined;
}

/** What happens to a request, in order. */
const STAGES: readonly PortStage<Shared>[] = [
  refuseUnreadable,
  inspectHead,
  refuseBlocked,
  answerPreflight,
  shedLoad,
  refuseConnect,
  normaliseTarget,
  answerOwnUsage,
  awaitFirstChunk,
  requireRoomForTunnel,
  // The operation, the caller and its Account.
  ...UNBLOCKED_STAGES,
  refuseBeforeCharge,
  readReservation,
  ...CHARGE_STAGES,
  holdBackUncharged,
  validateRequest,
  forwardRequest,
];

/** Creates the server, whose requests all enter at `take`. */
export async function createGateway(
  dependencies: GatewayDependencies,
): Promise<Gateway & { readonly upstreams: readonly Upstream[] }> {
  const { baseUrl, cors, listen, tls, usage } = dependencies;
  const trusted = new TrustedProxies(listen.trustedProxies);
  const upstreams = new Upstreams(dependencies.upstream, trusted);
  dependencies.observer.showUpstreams(upstreams.all);
  const server = createServer(listen, { baseUrl, lines: linesForAnyone(cors) }, tls);
  const { app, connections } = server;
  const ownUsage = usage.path === undefined ? undefined : new OwnUsage(usage.path, dependencies);
  const isBusy = watchLoad(app, listen.maxEventLoopDelayMs, warnOf(dependencies.log));
  const shared: Shared = { ...dependencies, trusted, isBusy, upstreams, ownUsage };
  const { take, serve } = new Entrance({
    stages: STAGES,
    shared,
    failure: 'the gateway failed',
    begin(request) {
      request.seesEnd = true;
    },
    refuse: (request, refusal) => respond(request, refusal, baseUrl),
    end(request) {
      if (request.operation?.settlement === undefined) return undefined;
      return settleResponse(request, request.source.status, dependencies.store);
    },
  });
  connections.onExchange = take;
  serveUpgrades(connections, app.routing);
  await app.register(httpProxy, {
    upstream: dependencies.upstream.url,
    httpMethods: app.supportedMethods,
    disableRequestLogging: true,
    // `forward` has a client of its own. Without this, http-proxy opens one of undici, which the bundle does not have.
    http: {},
    handler: serve,
  });
  return {
    upstreams: upstreams.all,
    listen: async ({ host, port }) => servedUrl(await app.listen({ host, port }), tls),
    async close(graceMs) {
      await closeWithin(server, graceMs);
      upstreams.destroy();
    },
  };
}

function inspectHead({ source }: PortRequest, { listen }: Shared) {
  return inspect(source.head, listen);
}

/** A blocked address gets no other answer. The log and the usage name the operation that it asked for, if there is one. */
function refuseBlocked(request: PortRequest, shared: Shared) {
  const { blocks, ownUsage } = shared;
  if (blocks.isEmpty || blocks.of('address', request.clientNetwork) === undefined) return undefined;
  if (normaliseTarget(request, shared) === undefined) {
    if (ownUsage?.isAsked(request)) request.operation = OWN_USAGE;
    else matchOperation(request, shared);
  }
  return refuseBlockedAddress(request, shared);
}

/** Answers the question that a browser asks before a request of another origin. */
function answerPreflight(request: PortRequest, { cors }: Shared) {
  const { source, method } = request;
  if (method !== 'OPTIONS' || !isAnsweredPreflight(cors, source.head)) return undefined;
  const lines = new FieldLines();
  addGatewayFields(lines, request);
  addPreflight(lines, source.head, request.cors, METHODS, cors);
  source.answer(204, lines, { text: '', encoding: 'latin1' });
  return 'answered';
}

/** The target of a CONNECT is not a path (RFC 9112 section 3.2.3). */
function refuseConnect({ method }: PortRequest) {
  return method === 'CONNECT' ? refuseMethod() : undefined;
}

function answerOwnUsage(request: PortRequest, { ownUsage }: Shared) {
  return ownUsage?.isAsked(request) ? ownUsage.answer(request) : undefined;
}

/** Yields one turn of the event loop so that a malformed first chunk is rejected before charging. */
function awaitFirstChunk({ source }: PortRequest) {
  return source.field('transfer-encoding') === undefined ? undefined : setImmediate(undefined);
}

/** Comes before the charge, so that a request that cannot be served costs nothing. */
function requireRoomForTunnel({ source, canonicalTarget }: PortRequest, { upstreams }: Shared) {
  if (!source.isTunnel) return undefined;
  return upstreams.find(canonicalTarget.path).turns.hasRoomForTunnel() ? undefined : TUNNELS_BUSY;
}

/** Nothing is spent on a request that cannot be served any more. */
function refuseBeforeCharge(request: PortRequest, shared: Shared) {
  if (isFree(request)) return undefined;
  const { source } = request;
  if (source.brokenBy !== undefined) return source.brokenBy;
  return source.isAbandoned ? ABANDONED : withoutShare(request, shared);
}

const OPTIONS_BODY = new Refusal('BadRequest', 'An OPTIONS request must not have a body.');

/** Ends OPTIONS requests and free operations that have no share left, before the body is read. */
function holdBackUncharged(request: PortRequest, shared: Shared) {
  const { operation, source } = request;
  if (!isFree(request)) return undefined;
  if (operation === undefined && source.hasBody) return OPTIONS_BODY;
  return withoutShare(request, shared);
}

/** Too many requests wait, or it would exceed a share of the upstream's connections. `forward` checks once more. */
function withoutShare(request: PortRequest, { upstreams }: Shared): Refusal | undefined {
  return crowdedOut(upstreams.find(request.canonicalTarget.path), request);
}

/** A body that was read for what it asks to reserve is kept, to be forwarded. */
function readReservation(request: PortRequest) {
  return request.operation?.settlement?.reserve === undefined ? undefined : reserve(request);
}

/** A body that was read to validate it is kept, to be forwarded. */
function validateRequest(request: PortRequest) {
  const { operation, source } = request;
  if (operation === undefined) return undefined;
  if (operation.rules === undefined) return source.brokenBy;
  return andThen(
    validate(operation, request.canonicalTarget, source),
    (refusal) => refusal ?? source.brokenBy,
  );
}

function forwardRequest(request: PortRequest, shared: Shared) {
  return andThen(forward(shared.upstreams, request, shared), orAnswered);
}

function orAnswered(refusal: Refusal | undefined) {
  return refusal ?? 'answered';
}
