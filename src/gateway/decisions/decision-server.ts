/** A port where other proxies ask whether a request may pass. It runs match to charge, and forwards nothing. */
import { judgeToken } from '../../admin/judge-token.ts';
import type { Settings } from '../../config/settings/settings.ts';
import { Refusal } from '../../domain/problems.ts';
import { TrustedProxies } from '../../http/message/fields/forwarded.ts';
import { inspect } from '../../http/message/fields/inspect.ts';
import { closeWithin, createServer, watchLoad } from '../../http/server/server.ts';
import { type PortTls, servedUrl } from '../../http/server/tls.ts';
import { CHARGE_STAGES, isFree, MATCH_STAGES } from '../../stages/decide.ts';
import type { Gateway, GatewayDependencies } from '../dependencies.ts';
import {
  Entrance,
  normaliseTarget,
  type PortRequest,
  type PortStage,
  refuseUnreadable,
  shedLoad,
  warnOf,
} from '../entrance.ts';
import { decideAsked, type ProgramDependencies } from './api/decide-route.ts';
import { HeldDecisions } from './api/held-decisions.ts';
import type { Receipts } from './api/receipt.ts';
import { settleAsked } from './api/settle-route.ts';
import { allow, refuse } from './port-answers.ts';
import { methodFieldOf, misleadingField, readQuestion, unreadProtocol } from './protocols.ts';
import { listenAtSocket } from './socket.ts';

/** Where programs ask, and where they report what decisions have cost. */
const DECIDE_PATH = '/decide';
const SETTLE_PATH = '/settle';

const WRONG_TOKEN = new Refusal('Unauthenticated', 'The token is not the one of decisions.tokenFile.', {
  headers: { 'WWW-Authenticate': 'Bearer realm="weir decisions"' },
});
const NO_TOKEN_FILE = new Refusal('ServiceUnavailable', 'The file of decisions.tokenFile cannot be used.');

const NOT_TRUSTED = new Refusal(
  'Forbidden',
  'Only the proxies in decisions.trusted may ask for decisions; this address is not one of them.',
);
const FROM_A_PAGE = new Refusal(
  'Forbidden',
  'A page in a browser may only ask with the token of decisions.tokenFile: the address of a browser does not show whose page it is.',
);
const ABANDONED = new Refusal('BadRequest', 'The proxy closed the connection.', { closes: true });

/** What happens to a question, in order. */
const STAGES: readonly PortStage<ProgramDependencies>[] = [
  refuseUnreadable,
  understand,
  shedLoad,
  answerProgram,
  ...MATCH_STAGES,
  refuseAbandoned,
  ...CHARGE_STAGES,
  allow,
];

/**
 * Creates the server. It has the same limits and time-outs as the port for clients.
 *
 * @param receipts of held decisions; closed with the server
 * @param tls of this port; undefined to serve HTTP
 */
export async function createDecisionServer(
  dependencies: GatewayDependencies,
  settings: Settings['decisions'],
  receipts: Receipts,
  tls: PortTls | undefined,
): Promise<Gateway> {
  const { trusted, deniedStatus, extAuthzPrefix, socketPath } = settings;
  const { baseUrl, listen } = dependencies;
  const held = new HeldDecisions(dependencies);
  const server = createServer(listen, { baseUrl, lines: '' }, tls);
  const { app, connections } = server;
  const shared: ProgramDependencies = {
    ...dependencies,
    trusted: new TrustedProxies(trusted, { isSocket: socketPath !== undefined }),
    isBusy: watchLoad(app, listen.maxEventLoopDelayMs, warnOf(dependencies.log)),
    settings,
    receipts,
    held,
  };
  const { take, serve } = new Entrance({
    stages: STAGES,
    shared,
    failure: 'a decision failed',
    begin: (request) => readRequest(request, extAuthzPrefix),
    refuse: (request, refusal) => refuse(request, refusal, baseUrl, deniedStatus),
  });
  connections.onExchange = take;
  app.all('/', serve);
  return {
    async listen({ host, port: number }) {
      if (socketPath === undefined) return servedUrl(await app.listen({ host, port: number }), tls);
      await listenAtSocket(socketPath, () => app.listen({ path: socketPath }));
      return `unix:${socketPath}`;
    },
    async close(graceMs) {
      await closeWithin(server, graceMs);
      receipts.close();
      held.close();
    },
  };
}

/** Finds out what is asked about. If that is not clear, the request has a refusal, which `understand` returns. */
function readRequest(request: PortRequest, extAuthzPrefix: string): void {
  const { head } = request.source;
  // A program asks at a path of its own, unless every path is one of ext_authz.
  const path = head.target.split('?', 1)[0];
  if (extAuthzPrefix !== '' && (path === DECIDE_PATH || path === SETTLE_PATH)) {
    request.protocol = 'decide';
    return;
  }
  const asked = readQuestion(head, extAuthzPrefix);
  if (asked instanceof Refusal) {
    request.protocol = unreadProtocol(head.target, extAuthzPrefix);
    request.refusal = asked;
    return;
  }
  request.protocol = asked.protocol;
  request.method = asked.method;
  request.rawTarget = asked.rawTarget;
}

/** Why there is nothing to decide; otherwise the request gets the target that is asked about. */
function understand(request: PortRequest, shared: ProgramDependencies): Refusal | undefined {
  const { protocol, source, refusal } = request;
  if (protocol === 'decide') return undefined;
  if (!shared.trusted.has(source.peer)) return NOT_TRUSTED;
  if (refusal !== undefined || protocol === undefined) return refusal;
  return (
    inspect(source.head, shared.listen, methodFieldOf(protocol)) ??
    misleadingField(source.head, protocol) ??
    normaliseTarget(request, shared)
  );
}

/** Answers the questions of a program. From an address that is not trusted, it needs the token of the port. */
function answerProgram(request: PortRequest, shared: ProgramDependencies) {
  return request.protocol === 'decide' ? answerQuestions(request, shared) : undefined;
}

async function answerQuestions(
  request: PortRequest,
  shared: ProgramDependencies,
): Promise<Refusal | 'answered'> {
  const { source } = request;
  const authorization = source.field('authorization');
  const verdict = judgeToken(authorization, shared.settings, 'decisions');
  if (verdict === 'wrong') {
    request.tokenFault = 'unknown-token';
    return WRONG_TOKEN;
  }
  if (verdict === 'unreadable' && authorization !== undefined) return NO_TOKEN_FILE;
  if (verdict !== 'right') {
    if (!shared.trusted.has(source.peer)) return NOT_TRUSTED;
    // Browsers send it with every POST, also from a page whose name leads to this address.
    if (source.field('origin') !== undefined) return FROM_A_PAGE;
  }
  const refusal = inspect(source.head, shared.listen);
  if (refusal !== undefined) return refusal;
  const isSettling = source.head.target.startsWith(SETTLE_PATH);
  return isSettling ? settleAsked(request, shared) : decideAsked(request, verdict === 'right', shared);
}

/** Nothing is spent for a proxy that has left. */
function refuseAbandoned(request: PortRequest): Refusal | undefined {
  if (isFree(request)) return undefined;
  const { source } = request;
  return source.brokenBy ?? (source.isAbandoned ? ABANDONED : undefined);
}
