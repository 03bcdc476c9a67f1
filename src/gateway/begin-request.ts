import { corsAnswer } from '../http/message/fields/cors.ts';
import type { TrustedProxies } from '../http/message/fields/forwarded.ts';
import { RandomTexts } from '../observe/log/random-texts.ts';
import { traceparentFrom } from '../observe/log/traceparent.ts';
import type { Exchange } from '../stages/exchange.ts';
import type { RequestContext } from '../stages/request-context.ts';
import type { GatewayDependencies } from './dependencies.ts';

/**
 * Completes a new exchange with what the log and the traces need, and counts and logs the request when it ends, for whatever reason.
 *
 * @param asked what a proxy asks about, where it asks for a decision
 */
export function beginRequest(
  exchange: Exchange,
  parts: GatewayDependencies & {
    readonly trusted: TrustedProxies;
    readonly finish: (exchange: Exchange) => void;
  },
  asked?: Pick<RequestContext, 'method' | 'protocol'>,
): void {
  const { head } = exchange;
  const startedMs = performance.now();
  exchange.requestId = requestIdFrom(head.field('x-request-id'));
  exchange.startedMs = startedMs;
  if (asked !== undefined) {
    exchange.method = asked.method;
    exchange.protocol = asked.protocol;
  }
  const spans = parts.tracing?.begin(head.headers, exchange.method, startedMs);
  exchange.spans = spans;
  exchange.traceparent = spans?.traceparent ?? traceparentFrom(head.field('traceparent'));
  exchange.clientAddress = parts.trusted.addressOf(exchange);
  exchange.cors = corsAnswer(parts.cors, head.field('origin'));
  if (parts.isDraining()) exchange.endKeepAlive();
  exchange.onClosed = parts.finish;
}

/** Contains no characters that could forge a log line. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** UUIDs of version 4 (RFC 9562 section 5.4). */
const newRequestIds = new RandomTexts('xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx');

/** The request id of an `X-Request-Id` header if it is valid, otherwise a new one. */
function requestIdFrom(header: string | undefined): string {
  return header !== undefined && REQUEST_ID.test(header) ? header : newRequestIds.next();
}

/** Counts and logs an exchange that has ended. */
export function finishExchange(exchange: Exchange, parts: ExchangeDependencies): void {
  const { protocol, refusal, status, caller, operation, target } = exchange;
  exchange.hold?.end();
  // Only for authenticated callers, so that a stranger cannot fill the log.
  if (caller !== undefined && operation?.listed === false) {
    parts.observer.unlistedOperation(exchange.method);
    parts.noteUnlisted(exchange.method, target?.path ?? '');
  }
  // A proxy may be sent another status; its client gets the refusal's own.
  const isDecision = protocol !== undefined && status !== 0;
  finishRequest(exchange, isDecision ? (refusal?.status ?? status) : status, parts);
}

type FinishDependencies = Pick<GatewayDependencies, 'observer' | 'accessLog'>;

interface ExchangeDependencies extends FinishDependencies {
  readonly noteUnlisted: (method: string, path: string) => void;
}

/** Counts and logs a request that has ended. */
export function finishRequest(
  request: RequestContext,
  status: number,
  { observer, accessLog }: FinishDependencies,
): void {
  const nowMs = performance.now();
  const totalMs = nowMs - request.startedMs;
  observer.requestFinished(request, status, totalMs);
  accessLog?.write(request, status, totalMs, nowMs);
  request.spans?.end(request, status, totalMs);
}
