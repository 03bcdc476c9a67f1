/**
 * The life of a client's request. `PIPELINE` lists its stages in order, up to the upstream; `decide` runs those that are independent of
 * HTTP. Each stage has its own file, and only this file, port.ts and decide.ts import them.
 */
import { setImmediate } from 'node:timers/promises';
import httpProxy from '@fastify/http-proxy';
import { andThen } from '../domain/awaitable.ts';
import { Refusal, TUNNELS_BUSY } from '../domain/problems.ts';
import { addPreflight, isAnsweredPreflight, linesForAnyone } from '../http/message/fields/cors.ts';
import { TrustedProxies } from '../http/message/fields/forwarded.ts';
import { inspect } from '../http/message/fields/inspect.ts';
import { FieldLines } from '../http/message/head/field-lines.ts';
import { serveUpgrades } from '../http/server/node/upgrades.ts';
import { closeWithin, createServer } from '../http/server/server.ts';
import { servedUrl } from '../http/server/tls.ts';
import { DECISION_STAGES, targetOf } from '../stages/decide.ts';
import type { Exchange } from '../stages/exchange.ts';
import { METHODS, refuseMethod } from '../stages/match.ts';
import { addGatewayFields, respond } from '../stages/respond.ts';
import { runStages, type Stage } from '../stages/stages.ts';
import { validate } from '../stages/validate.ts';
import { beginRequest } from './begin-request.ts';
import type { Gateway, GatewayDependencies } from './dependencies.ts';
import { normaliseTarget, type Outcome, Port, type PortDependencies, portDependencies } from './port.ts';
import { UPSTREAM_BUSY } from './upstream/failures.ts';
import { forward } from './upstream/forward.ts';
import { crowdedOut } from './upstream/relay.ts';
import { Upstreams } from './upstream/upstreams.ts';
import { OwnUsage } from './usage/own-usage.ts';

/** What all requests share. */
interface Shared extends PortDependencies {
  readonly upstreams: Upstreams;
}

/** The stages of a request with its target before the upstream, in their order. */
const PIPELINE: readonly Stage<Exchange, Shared>[] = [
  awaitFirstChunk,
  requireFreeUpstream,
  ...DECISION_STAGES,
  holdBackUncharged,
  validateExchange,
];

/** Creates the server and runs the stages for each of its requests. */
export async function createGateway(dependencies: GatewayDependencies): Promise<Gateway> {
  const { baseUrl, cors, listen, tls } = dependencies;
  const trusted = new TrustedProxies(listen.trustedProxies);
  const upstreams = new Upstreams(dependencies.upstream, trusted);
  const server = createServer(listen, METHODS, { baseUrl, lines: linesForAnyone(cors) }, tls);
  const shared: Shared = { ...portDependencies(dependencies, trusted), upstreams };
  const forwarding = { ...shared, maxBodyBytes: listen.maxBodyBytes };
  const { path } = dependencies.usage;
  const usage = path === undefined ? undefined : new OwnUsage(path, shared);
  const whyNotCharge = (exchange: Exchange) =>
    exchange.brokenBy ?? (exchange.isAbandoned ? ABANDONED : undefined) ?? withoutShare(exchange, shared);
  const port = new Port(
    {
      failure: 'the gateway failed',
      begin(exchange) {
        exchange.whyNotCharge = whyNotCharge;
        beginRequest(exchange, shared);
      },
      inspect: (exchange) => inspect(exchange.head, listen) ?? answerPreflight(exchange, cors),
      runStages(exchange) {
        const refusal = normaliseExchange(exchange, shared);
        if (refusal !== undefined) return refusal;
        return usage?.isAsked(exchange) ? usage.answer(exchange) : runStages(PIPELINE, exchange, shared);
      },
      serve: (exchange) => forward(upstreams.find(targetOf(exchange).path), exchange, forwarding),
      refuse: (exchange, refusal) => respond(exchange, refusal, baseUrl),
    },
    dependencies.log,
  );
  await port.setUp(server, listen.maxEventLoopDelayMs);
  const { app, connections } = server;
  serveUpgrades(connections, app.routing);
  // The plugin provides the route and its life cycle. Its documented `preHandler` option forwards the request and hijacks the reply, so
  // the plugin's own handler never runs: it would build four URLs per request, turn errors of the upstream into 500s, retry GETs
  // and copy every chunk through two more streams.
  await app.register(httpProxy, {
    upstream: dependencies.upstream.url,
    disableRequestLogging: true,
    preHandler: port.serve,
  });
  return {
    listen: async ({ host, port: number }) => servedUrl(await app.listen({ host, port: number }), tls),
    async close(graceMs) {
      await closeWithin(server, graceMs);
      upstreams.destroy();
    },
  };
}

/** Answers a preflight of CORS; undefined for any other request. */
function answerPreflight(exchange: Exchange, cors: GatewayDependencies['cors']): Outcome {
  const { head } = exchange;
  if (!isAnsweredPreflight(cors, head)) return undefined;
  const lines = new FieldLines();
  addGatewayFields(lines, exchange);
  addPreflight(lines, head, exchange.cors, METHODS, cors);
  exchange.begin(204, lines);
  exchange.endThisTurn({ text: '', encoding: 'latin1' });
  return 'answered';
}

function normaliseExchange(exchange: Exchange, shared: Shared) {
  // The target of a CONNECT is not a path (RFC 9112 section 3.2.3).
  if (exchange.method === 'CONNECT') return refuseMethod();
  return normaliseTarget(exchange, exchange.head.target, shared);
}

/** Yields one turn of the event loop so that a malformed first chunk is rejected before charging. */
function awaitFirstChunk(exchange: Exchange) {
  return exchange.field('transfer-encoding') === undefined ? undefined : setImmediate(undefined);
}

/** Comes before the charge, so that a request that cannot be served costs nothing. */
function requireFreeUpstream(exchange: Exchange, { upstreams }: Shared) {
  const { shares } = upstreams.find(targetOf(exchange).path);
  if (!shares.hasRoom) return UPSTREAM_BUSY;
  return exchange.isTunnel && !shares.hasRoomForTunnel() ? TUNNELS_BUSY : undefined;
}

const ABANDONED = new Refusal('BadRequest', 'The request was aborted.', { closes: true });

const OPTIONS_BODY = new Refusal('BadRequest', 'An OPTIONS request must not have a body.');

/** Ends OPTIONS requests and free operations that have no share left, before the body is read. */
function holdBackUncharged(exchange: Exchange, shared: Shared) {
  const { operation } = exchange;
  if (operation !== undefined && operation.cost > 0) return undefined;
  if (operation === undefined && exchange.hasBody) return OPTIONS_BODY;
  return withoutShare(exchange, shared);
}

/** Requests without a caller, and tunnels, may use only a share of the upstream's connections. `forward` checks once more. */
function withoutShare(exchange: Exchange, { upstreams }: Shared): Refusal | undefined {
  return crowdedOut(upstreams.find(targetOf(exchange).path), exchange);
}

/** Validates the request against its operation. A body that was read for this is kept, to be forwarded. */
function validateExchange(exchange: Exchange) {
  if (exchange.operation === undefined) return undefined;
  const refused = validate(exchange.operation, targetOf(exchange), exchange);
  return andThen(refused, (refusal) => refusal ?? exchange.brokenBy);
}
