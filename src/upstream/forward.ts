import type { Refusal } from '../domain/problems.ts';
import { type Credential, spellBearer, withoutCredentials } from '../fields/credentials.ts';
import { pushForwarded, type TrustedProxies } from '../fields/forwarded.ts';
import { pushIdentity, pushTrace, requestFields } from '../fields/headers.ts';
import type { UpstreamRequest } from '../http1/request.ts';
import { targetOf } from '../stages/decide.ts';
import type { Exchange } from '../stages/exchange.ts';
import { crowdedOut, Relay } from './relay.ts';
import { type TunnelObserver, TunnelRelay } from './tunnel.ts';
import type { Upstream } from './upstreams.ts';

const TRAILERS = /(?:^|,)\s*trailers\s*(?:,|$)/i;

/** What all forwarded requests share. */
export interface ForwardContext {
  readonly trusted: TrustedProxies;
  readonly observer: TunnelObserver;
  readonly maxBodyBytes: number;
  readonly baseUrl: string;
  readonly credentials: readonly Credential[];
}

/**
 * Sends the request to the upstream and streams the response back; an upstream that does not respond is a 503 problem.
 *
 * @returns why the request is not sent; undefined if it is
 */
export function forward(
  upstream: Upstream,
  exchange: Exchange,
  { trusted, maxBodyBytes, baseUrl, observer, credentials }: ForwardContext,
): Refusal | undefined {
  if (exchange.isAbandoned) {
    exchange.abort();
    return undefined;
  }
  // Requests that passed the earlier check together, and were then charged or sent their bodies, must not all go on.
  const refusal = crowdedOut(upstream, exchange);
  if (refusal !== undefined) return refusal;
  const { path, search } = targetOf(exchange);
  const outgoing = {
    method: exchange.method,
    target: upstream.basePath + path + search,
    host: upstream.preservesHost ? exchange.field('host') || undefined : undefined,
    fields: withoutCredentials(
      upstreamFields(exchange, trusted.has(exchange.peer), upstream.origin),
      credentials,
    ),
    ...bodyOf(exchange, maxBodyBytes),
  };
  const relay = exchange.isTunnel
    ? new TunnelRelay(upstream, outgoing, exchange, baseUrl, observer)
    : new Relay(upstream, outgoing, exchange, baseUrl);
  relay.start();
  return undefined;
}

/** The body to send: what was already read of it, or else the client's as it arrives. */
function bodyOf(exchange: Exchange, maxBodyBytes: number): Pick<UpstreamRequest, 'body' | 'bodyLength'> {
  if (!exchange.hasBody) return { body: null };
  if (exchange.body !== undefined) return { body: exchange.body };
  const length = exchange.field('content-length');
  return {
    body: exchange.readBody(maxBodyBytes),
    bodyLength: length === undefined ? undefined : Number(length),
  };
}

/** The header fields sent upstream: the client's end-to-end fields and the gateway's own. */
export function upstreamFields(exchange: Exchange, isTrusted: boolean, upstreamOrigin: string): string[] {
  const { head, requestId, traceparent, spans, caller, peer } = exchange;
  const fields = requestFields(head.fields, exchange.field('connection'), isTrusted);
  fields.push('X-Request-Id', requestId);
  if (spans === undefined) pushTrace(fields, head.headers, traceparent);
  else fields.push(...spans.forward(upstreamOrigin));
  // RFC 9110 section 10.1.4: the only TE value that is passed on, because trailers are.
  const te = exchange.field('te');
  if (te !== undefined && TRAILERS.test(te)) fields.push('TE', 'trailers');
  pushForwarded(fields, exchange, isTrusted);
  const subject = peer.certificateSubject;
  if (subject !== undefined) fields.push('X-Client-Certificate-Subject', subject);
  if (caller === undefined) return withoutAccount(fields);
  if (exchange.field('authorization')?.startsWith('Bearer ') === false) spellBearer(fields);
  pushIdentity(fields, caller);
  return fields;
}

/** The Account that a public request or OPTIONS names is not forwarded: nobody checked that its sender may act for it. */
function withoutAccount(fields: readonly string[]): string[] {
  const isAccount = (index: number) => fields[index - (index % 2)]?.toLowerCase() === 'x-service-account';
  return fields.filter((_, index) => !isAccount(index));
}
