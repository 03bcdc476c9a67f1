/** A port where other proxies ask whether a request may pass. It runs match to charge, and forwards nothing. */
import { judgeToken } from '../../admin/port-token.ts';
import type { PortTokenSettings } from '../../config/settings/port-token.ts';
import { andThen } from '../../domain/awaitable.ts';
import { Refusal } from '../../domain/problems.ts';
import { TrustedProxies } from '../../http/message/fields/forwarded.ts';
import { inspect } from '../../http/message/fields/inspect.ts';
import { closeWithin, createServer } from '../../http/server/server.ts';
import { type PortTls, servedUrl } from '../../http/server/tls.ts';
import { decide } from '../../stages/decide.ts';
import type { Exchange } from '../../stages/exchange.ts';
import { METHODS } from '../../stages/match.ts';
import { beginRequest } from '../begin-request.ts';
import type { Gateway, GatewayDependencies } from '../dependencies.ts';
import { normaliseTarget, Port, type PortDependencies, portDependencies } from '../port.ts';
import { allow, refuse } from './answer.ts';
import { decideAsked } from './api/decide.ts';
import { type Asked, methodFieldOf, misleadingField, readQuestion, unreadProtocol } from './protocols.ts';
import { listenAtSocket } from './socket.ts';

export interface DecisionSettings extends PortTokenSettings {
  /** Addresses or CIDR ranges of the proxies that may ask. */
  readonly trusted: readonly string[];
  /** Status that reports a 429 to the proxy. */
  readonly deniedStatus: number;
  readonly extAuthzPrefix: string;
  /** Unix socket to listen on, in place of a port. */
  readonly socketPath?: string;
}

/** Where programs ask. */
const DECIDE_PATH = '/decide';

const WRONG_TOKEN = new Refusal('Unauthenticated', 'The token is not the one of decisions.tokenFile.', {
  headers: { 'WWW-Authenticate': 'Bearer realm="weir decisions"' },
});
const NO_TOKEN_FILE = new Refusal('ServiceUnavailable', 'The file of decisions.tokenFile cannot be used.');

const NOT_TRUSTED = new Refusal(
  'Forbidden',
  'Only the proxies in decisions.trusted may ask for decisions; this address is not one of them.',
);
const ABANDONED = new Refusal('BadRequest', 'The proxy closed the connection.', { closes: true });

/**
 * Creates the server. It has the same limits and time-outs as the port for clients.
 *
 * @param tls of this port; undefined to serve HTTP
 */
export async function createDecisionServer(
  dependencies: GatewayDependencies,
  settings: DecisionSettings,
  tls: PortTls | undefined,
): Promise<Gateway> {
  const { trusted, deniedStatus, extAuthzPrefix, socketPath } = settings;
  const { baseUrl, listen } = dependencies;
  const shared = portDependencies(
    dependencies,
    new TrustedProxies(trusted, { isSocket: socketPath !== undefined }),
  );
  const server = createServer(listen, METHODS, { baseUrl, lines: '' }, tls);
  const whyNotCharge = (exchange: Exchange) =>
    exchange.brokenBy ?? (exchange.isAbandoned ? ABANDONED : undefined);
  const port = new Port(
    {
      failure: 'a decision failed',
      begin(exchange) {
        if (isOfProgram(exchange, extAuthzPrefix)) {
          beginRequest(exchange, shared, { method: exchange.head.method, protocol: 'decide' });
          return undefined;
        }
        const asked = readQuestion(exchange.head, extAuthzPrefix);
        const { method, target } = exchange.head;
        const unread = { method, protocol: unreadProtocol(target, extAuthzPrefix) };
        beginRequest(exchange, shared, asked instanceof Refusal ? unread : asked);
        exchange.whyNotCharge = whyNotCharge;
        return asked;
      },
      inspect: (exchange, asked) => asked && understand(exchange, asked, shared),
      runStages(exchange) {
        if (exchange.protocol === 'decide') return answerProgram(exchange, settings, shared);
        return andThen(decide(exchange, shared), (refusal) => {
          if (refusal === undefined) allow(exchange);
          return refusal ?? 'answered';
        });
      },
      serve: () => undefined,
      refuse: (exchange, refusal) => refuse(exchange, refusal, { baseUrl, deniedStatus }),
    },
    dependencies.log,
  );
  await port.setUp(server, listen.maxEventLoopDelayMs);
  return {
    async listen({ host, port: number }) {
      if (socketPath === undefined) return servedUrl(await server.app.listen({ host, port: number }), tls);
      await listenAtSocket(socketPath, () => server.app.listen({ path: socketPath }));
      return `unix:${socketPath}`;
    },
    close: (graceMs) => closeWithin(server, graceMs),
  };
}

/** A program asks at a path of its own, unless every path is one of ext_authz. */
function isOfProgram({ head }: Exchange, extAuthzPrefix: string): boolean {
  return extAuthzPrefix !== '' && head.target.split('?', 1)[0] === DECIDE_PATH;
}

/** Answers the questions of a program. From an address that is not trusted, it needs the token of the port. */
async function answerProgram(
  exchange: Exchange,
  settings: DecisionSettings,
  shared: PortDependencies,
): Promise<Refusal | 'answered'> {
  const authorization = exchange.field('authorization');
  const verdict = judgeToken(authorization, settings, 'decisions');
  if (verdict === 'wrong') return WRONG_TOKEN;
  if (verdict === 'unreadable' && authorization !== undefined) return NO_TOKEN_FILE;
  if (verdict !== 'right' && !shared.trusted.has(exchange.peer)) return NOT_TRUSTED;
  const refusal = inspect(exchange.head, shared.listen);
  return refusal ?? (await decideAsked(exchange, verdict === 'right', shared)) ?? 'answered';
}

/** Why there is nothing to decide; otherwise the target that is asked about is in the exchange. */
function understand(
  exchange: Exchange,
  asked: Asked | Refusal,
  shared: PortDependencies,
): Refusal | undefined {
  if (!shared.trusted.has(exchange.peer)) return NOT_TRUSTED;
  if (asked instanceof Refusal) return asked;
  const { protocol } = asked;
  const refusal =
    inspect(exchange.head, shared.listen, methodFieldOf(protocol)) ??
    misleadingField(exchange.head, protocol);
  if (refusal !== undefined) return refusal;
  return normaliseTarget(exchange, asked.rawTarget, shared);
}
