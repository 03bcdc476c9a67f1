import type { Awaitable } from '../../domain/awaitable.ts';
import type { Refusal } from '../../domain/problems.ts';
import type { UpstreamRequest } from '../../http/client/request.ts';
import type { Exchange } from '../../http/exchange.ts';
import { addForwarded } from '../../http/message/fields/forwarded.ts';
import type { FieldLines } from '../../http/message/head/field-lines.ts';
import {
  addIdentity,
  addTrace,
  bearerToken,
  type CredentialField,
  type FieldTest,
  hiddenCredentials,
  requestLines,
} from '../../http/message/headers.ts';
import { refund } from '../../stages/settle.ts';
import type { PortDependencies, PortRequest } from '../entrance.ts';
import { crowdedOut, payerIdOf, Relay, trafficOf } from './relay.ts';
import { TunnelRelay } from './tunnel.ts';
import type { Upstream, Upstreams } from './upstreams.ts';

const TRAILERS = /(?<![^,])\s*trailers\s*(?:,|$)/i;

/**
 * Sends the request to the upstream and streams the response back; an upstream that does not respond is a 503 problem.
 *
 * @returns why the request is not sent; undefined if it is
 */
export function forward(
  upstreams: Upstreams,
  request: PortRequest,
  dependencies: PortDependencies,
): Awaitable<Refusal | undefined> {
  const upstream = upstreams.find(request.canonicalTarget.path);
  const { source: exchange } = request;
  if (!exchange.hasBody || exchange.body !== undefined || exchange.isAbandoned) {
    return send(upstream, request, dependencies);
  }
  const refusal = refuseCrowd(upstream, request, dependencies);
  if (refusal !== undefined) return refusal;
  const payer = `${trafficOf(request)} ${payerIdOf(request)}`;
  const reading = upstreams.bodies.read(request, payer);
  if (reading === undefined) return send(upstream, request, dependencies);
  return reading.then((broken) => broken ?? send(upstream, request, dependencies));
}

/** Requests that passed the earlier check together, and were then charged or sent their bodies, must not all go on. */
function refuseCrowd(
  upstream: Upstream,
  request: PortRequest,
  { store }: PortDependencies,
): Refusal | undefined {
  const refusal = crowdedOut(upstream, request);
  if (refusal !== undefined) refund(request, store);
  return refusal;
}

function send(upstream: Upstream, request: PortRequest, dependencies: PortDependencies): Refusal | undefined {
  const { trusted, listen, credentials } = dependencies;
  const { source: exchange, canonicalTarget } = request;
  if (exchange.isAbandoned) {
    exchange.abort();
    return undefined;
  }
  const refusal = refuseCrowd(upstream, request, dependencies);
  if (refusal !== undefined) return refusal;
  const outgoing = {
    method: request.method,
    target: upstream.basePath + canonicalTarget.path + canonicalTarget.search,
    host: upstream.preservesHost ? exchange.field('host') || undefined : undefined,
    lines: upstreamLines(request, trusted.has(exchange.peer), upstream.origin, credentials),
    body: bodyOf(exchange, listen.maxBodyBytes),
    bodyLength: lengthOf(exchange),
  };
  if (dependencies.httpMetrics !== undefined)
    request.forwarded = { origin: upstream.origin, atMs: performance.now() };
  const relay = exchange.isTunnel
    ? new TunnelRelay(upstream, outgoing, request, dependencies)
    : new Relay(upstream, outgoing, request, dependencies);
  return relay.start();
}

/** The body to send: what was already read of it, or else the client's as it arrives. */
function bodyOf(exchange: Exchange, maxBodyBytes: number): UpstreamRequest['body'] {
  if (!exchange.hasBody) return null;
  return exchange.body ?? exchange.pieces ?? exchange.readBody(maxBodyBytes);
}

function lengthOf(exchange: Exchange): number | undefined {
  const length = exchange.field('content-length');
  return length === undefined ? undefined : Number(length);
}

/** The fields sent upstream: the client's end-to-end fields and the gateway's own. */
function upstreamLines(
  request: PortRequest,
  isTrusted: boolean,
  upstreamOrigin: string,
  credentials: readonly CredentialField[],
): FieldLines {
  const { source: exchange, requestId, traceparent, spans, caller } = request;
  const { head, peer } = exchange;
  const lines = clientLines(request, isTrusted, credentials);
  if (spans === undefined) addTrace(lines, head, requestId, traceparent);
  else {
    lines.add('X-Request-Id', requestId);
    lines.addAll(spans.forward(upstreamOrigin, request.canonicalTarget.path));
  }
  // RFC 9110 section 10.1.4: the only TE value that is passed on, because trailers are. A handshake has a Connection field of its own.
  const te = exchange.field('te');
  if (te !== undefined && !exchange.isTunnel && TRAILERS.test(te))
    lines.addLines('TE: trailers\r\nConnection: TE\r\n');
  addForwarded(lines, exchange, isTrusted);
  const subject = peer.certificateSubject;
  if (subject !== undefined) lines.add('X-Client-Certificate-Subject', subject);
  if (caller !== undefined) addIdentity(lines, caller);
  return lines;
}

function clientLines(
  { source: { head }, caller }: PortRequest,
  isTrusted: boolean,
  credentials: readonly CredentialField[],
): FieldLines {
  const authorization = head.field('authorization');
  const token = caller && bearerToken(authorization ?? '');
  // For upstreams that compare the scheme's case.
  const isRespelt = token !== undefined && authorization?.startsWith('Bearer ') === false;
  const isCredential = hiddenCredentials(credentials, authorization);
  const isHidden =
    isRespelt || caller === undefined || isCredential !== undefined
      ? hiddenTest(isRespelt, caller === undefined, isCredential)
      : undefined;
  const lines = requestLines(head, isTrusted, isHidden);
  if (isRespelt) lines.add('Authorization', `Bearer ${token}`);
  return lines;
}

/** @param isAnonymous nobody checked that the sender of a public request or OPTIONS may act for the Account that it names */
function hiddenTest(
  isRespelt: boolean,
  isAnonymous: boolean,
  isCredential: FieldTest | undefined,
): FieldTest {
  return (name) => {
    if (isRespelt && name.lower === 'authorization') return true;
    return (isAnonymous && name.lower === 'x-service-account') || isCredential?.(name) === true;
  };
}
