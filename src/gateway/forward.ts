import type { IncomingMessage, ServerResponse } from 'node:http';
import { wholeBodyOf } from './edge/request.ts';
import { type Credential, spellBearer, withoutCredentials } from './http/credentials.ts';
import { pushForwarded, type TrustedProxies } from './http/forwarded.ts';
import { pushIdentity, pushTrace, requestFields } from './http/headers.ts';
import { hasBody } from './http/inspect.ts';
import { isAbandoned } from './http/lingering-close.ts';
import type { Stalls } from './http/stalls.ts';
import type { Upgrades } from './http/upgrades.ts';
import type { Refusal } from './problems.ts';
import type { RequestContext } from './request-context.ts';
import { clientSubject } from './tls/client-subject.ts';
import { UPSTREAM_BUSY } from './upstream/failures.ts';
import type { UpstreamRequest } from './upstream/http1/request.ts';
import { isCrowdedOut, Relay } from './upstream/relay.ts';
import { TunnelRelay } from './upstream/tunnel.ts';
import { UploadBody } from './upstream/upload-body.ts';
import type { Upstream } from './upstream/upstreams.ts';

const TRAILERS = /(?:^|,)\s*trailers\s*(?:,|$)/i;

/** What all forwarded requests share. */
export interface ForwardContext {
  readonly trusted: TrustedProxies;
  readonly upgrades: Upgrades;
  readonly stalls: Stalls;
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
  request: IncomingMessage,
  response: ServerResponse,
  context: RequestContext,
  { trusted, maxBodyBytes, baseUrl, upgrades, stalls, credentials }: ForwardContext,
): Refusal | undefined {
  if (isAbandoned(response)) {
    response.destroy();
    return undefined;
  }
  // Requests that passed the earlier check together, and were then charged or sent their bodies, must not all go on.
  if (isCrowdedOut(upstream, context)) return UPSTREAM_BUSY;
  const { target } = context;
  if (target === undefined) throw new TypeError('forward needs a normalised target');
  const outgoing = {
    method: context.method,
    target: upstream.basePath + target.path + target.search,
    host: upstream.preservesHost ? request.headers.host || undefined : undefined,
    fields: withoutCredentials(
      upstreamFields(request, context, trusted.has(request.socket), upstream.origin),
      credentials,
    ),
    ...bodyOf(request, response, context, maxBodyBytes),
  };
  const head = upgrades.headOf(request);
  const relay =
    head === undefined
      ? new Relay(upstream, outgoing, response, context, baseUrl)
      : new TunnelRelay(upstream, outgoing, response, context, baseUrl, { head, stalls });
  relay.start();
  return undefined;
}

/** The body to send: what was already read of it for validation, or else the client's as it arrives. */
function bodyOf(
  request: IncomingMessage,
  response: ServerResponse,
  { body }: RequestContext,
  maxBodyBytes: number,
): Pick<UpstreamRequest, 'body' | 'bodyLength'> {
  if (body !== undefined) return { body };
  if (!hasBody(request)) return { body: null };
  const whole = wholeBodyOf(request);
  if (whole !== undefined) return { body: whole };
  const length = request.headers['content-length'];
  return {
    body: new UploadBody(request, response, maxBodyBytes),
    bodyLength: length === undefined ? undefined : Number(length),
  };
}

/** The header fields sent upstream: the client's end-to-end fields and the gateway's own. */
export function upstreamFields(
  request: IncomingMessage,
  { requestId, traceparent, spans, caller }: RequestContext,
  isTrusted: boolean,
  upstreamOrigin: string,
): string[] {
  const { headers, rawHeaders } = request;
  const fields = requestFields(rawHeaders, headers.connection, isTrusted);
  fields.push('X-Request-Id', requestId);
  if (spans === undefined) pushTrace(fields, request, traceparent);
  else fields.push(...spans.forward(upstreamOrigin));
  // RFC 9110 section 10.1.4: the only TE value that is passed on, because trailers are.
  if (headers.te !== undefined && TRAILERS.test(`${headers.te}`)) fields.push('TE', 'trailers');
  pushForwarded(fields, request, isTrusted);
  const subject = clientSubject(request.socket);
  if (subject !== undefined) fields.push('X-Client-Certificate-Subject', subject);
  if (caller === undefined) return withoutAccount(fields);
  if (headers.authorization?.startsWith('Bearer ') === false) spellBearer(fields);
  pushIdentity(fields, caller);
  return fields;
}

/** The Account that a public request or OPTIONS names is not forwarded: nobody checked that its sender may act for it. */
function withoutAccount(fields: readonly string[]): string[] {
  const isAccount = (index: number) => fields[index - (index % 2)]?.toLowerCase() === 'x-service-account';
  return fields.filter((_, index) => !isAccount(index));
}
