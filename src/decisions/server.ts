/** A port where other proxies ask whether a request may pass. It runs match to charge, and forwards nothing. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { type Awaitable, andThen } from '../domain/awaitable.ts';
import { decide } from '../gateway/decide.ts';
import type { Gateway, GatewayDependencies } from '../gateway/dependencies.ts';
import { brokenBy } from '../gateway/http/broken.ts';
import { fieldReader } from '../gateway/http/credentials.ts';
import { TrustedProxies } from '../gateway/http/forwarded.ts';
import { namedAccount } from '../gateway/http/headers.ts';
import { inspect } from '../gateway/http/inspect.ts';
import { isAbandoned, isClosing } from '../gateway/http/lingering-close.ts';
import { capConnections, shedLoad } from '../gateway/http/overload.ts';
import { closeWithin, createServer } from '../gateway/http/server.ts';
import { Stalls } from '../gateway/http/stalls.ts';
import { beginRequest } from '../gateway/log/begin-request.ts';
import { createUnlistedLog } from '../gateway/log/unlisted-log.ts';
import { METHODS } from '../gateway/match.ts';
import { normalise } from '../gateway/normalise.ts';
import { Refusal } from '../gateway/problems.ts';
import type { RequestContext } from '../gateway/request-context.ts';
import { allow, refuse } from './answer.ts';
import { type Asked, methodFieldOf, misleadingField, readQuestion, unreadProtocol } from './protocols.ts';

export interface DecisionSettings {
  /** Addresses or CIDR ranges of the proxies that may ask. */
  readonly trusted: readonly string[];
  /** Status that reports a 429 to the proxy. */
  readonly deniedStatus: number;
  readonly extAuthzPrefix: string;
}

const NOT_TRUSTED = new Refusal(
  'Forbidden',
  'Only the proxies in decisions.trusted may ask for decisions; this address is not one of them.',
);
const ABANDONED = new Refusal('BadRequest', 'The proxy closed the connection.', { closes: true });

/** What all decisions share. */
interface Shared extends GatewayDependencies {
  readonly trusted: TrustedProxies;
  readonly noteUnlisted: (method: string, path: string) => void;
}

/** Creates the server. It has the same limits and time-outs as the port for clients. */
export async function createDecisionServer(
  dependencies: GatewayDependencies,
  { trusted, deniedStatus, extAuthzPrefix }: DecisionSettings,
): Promise<Gateway> {
  const { baseUrl, listen, log } = dependencies;
  const shared = {
    ...dependencies,
    trusted: new TrustedProxies(trusted),
    noteUnlisted: createUnlistedLog(log),
  };
  const app = createServer(listen, METHODS, baseUrl);
  new Stalls(listen).watchServer(app.server);
  const surplus = capConnections(app.server, listen.maxConnections);
  const finish = (reply: FastifyReply, context: RequestContext, refusal: Refusal | undefined) => {
    reply.hijack();
    if (refusal === undefined) allow(reply.raw, context);
    else refuse(reply.raw, context, refusal, { baseUrl, deniedStatus });
  };

  app.decorateRequest('context', undefined);
  app.addHook('onRequest', (request, reply, done) => {
    const { raw, originalUrl } = request;
    if (isClosing(raw.socket)) {
      reply.hijack();
      return;
    }
    const asked = readQuestion(raw, originalUrl, extAuthzPrefix);
    const context = beginRequest(
      raw,
      reply.raw,
      shared,
      asked instanceof Refusal
        ? { method: raw.method ?? '', protocol: unreadProtocol(originalUrl, extAuthzPrefix) }
        : asked,
    );
    request.context = context;
    const refusal = surplus(raw.socket) ?? brokenBy(raw) ?? understand(raw, context, asked, shared);
    if (refusal === undefined) done();
    else finish(reply, context, refusal);
  });
  await shedLoad(app, listen.maxEventLoopDelayMs, ({ context }, reply, refusal) => {
    if (context !== undefined) finish(reply, context, refusal);
  });
  app.addHook('onRequest', ({ raw, context }, reply, done) => {
    if (context === undefined) return;
    const verdict = andThen(answer(raw, reply.raw, context, shared), (refusal) =>
      finish(reply, context, refusal),
    );
    if (verdict instanceof Promise) verdict.catch(done);
  });
  app.setErrorHandler((error, { context }, reply) => {
    log.error({ err: error, requestId: context?.requestId }, 'a decision failed');
    const refusal = new Refusal('ServiceUnavailable', 'The gateway could not handle this request.');
    if (context !== undefined) finish(reply, context, refusal);
  });
  return {
    listen: ({ host, port }) => app.listen({ host, port }),
    close: (graceMs) => closeWithin(app, { breakOff: () => undefined }, graceMs),
  };
}

/** Why there is nothing to decide; otherwise the target that is asked about is in the context. */
function understand(
  request: IncomingMessage,
  context: RequestContext,
  asked: Asked | Refusal,
  { trusted, listen, operations, upstream }: Shared,
): Refusal | undefined {
  if (!trusted.has(request.socket)) return NOT_TRUSTED;
  if (asked instanceof Refusal) return asked;
  const { protocol } = asked;
  const refusal = inspect(request, listen, methodFieldOf(protocol)) ?? misleadingField(request, protocol);
  if (refusal !== undefined) return refusal;
  const target = normalise(asked.rawTarget, upstream.pathProfile, (path) =>
    operations.declaresSlash(asked.method, path),
  );
  if (target instanceof Refusal) return target;
  context.target = target;
  return undefined;
}

/** Runs match to charge. */
function answer(
  request: IncomingMessage,
  response: ServerResponse,
  context: RequestContext,
  shared: Shared,
): Awaitable<Refusal | undefined> {
  const { method, target } = context;
  if (target === undefined) throw new TypeError('the request has not been normalised');
  const question = {
    method,
    path: target.path,
    authorization: request.headers.authorization,
    field: fieldReader(request.rawHeaders),
    client: () => shared.trusted.clientOf(request),
    namedAccount: namedAccount(request),
    cancelled: () => brokenBy(request) ?? (isAbandoned(response) ? ABANDONED : undefined),
  };
  return andThen(decide(question, context, shared), (refusal) => {
    // Only for authenticated callers, so that a stranger cannot fill the log.
    if (context.caller !== undefined && context.operation?.listed === false) {
      shared.observer.unlistedOperation(method);
      shared.noteUnlisted(method, target.path);
    }
    return refusal;
  });
}
