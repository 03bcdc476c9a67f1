/**
 * Forwards what was charged. @fastify/http-proxy owns the route; the request itself goes through undici's
 * `dispatch` straight into the raw response, because reply.from would buffer errors into 500s, retry GETs and copy
 * every chunk through two more streams.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isAbandoned } from './http/closing.ts';
import { pushForwarded, type TrustedProxies } from './http/forwarded.ts';
import { requestFields } from './http/headers.ts';
import { hasBody } from './http/inspect.ts';
import type { Stalls } from './http/stalls.ts';
import type { Upgrades } from './http/upgrades.ts';
import type { Exchange } from './types.ts';
import { Relay } from './upstream/relay.ts';
import { TunnelRelay } from './upstream/tunnel.ts';
import { UploadBody } from './upstream/upload-body.ts';
import type { Upstream } from './upstream/upstreams.ts';

const TRAILERS = /(?:^|,)\s*trailers\s*(?:,|$)/i;

/** What every forwarded request shares. */
export interface ForwardContext {
  readonly trusted: TrustedProxies;
  readonly upgrades: Upgrades;
  readonly stalls: Stalls;
  readonly maxBodyBytes: number;
  readonly baseUrl: string;
}

/**
 * Routes every admitted request to `handle`. http-proxy would first build four URLs from a path that is `/` for every
 * request, to see that it leads nowhere else; only an upgrade, which it carries out itself, needs that.
 */
export async function routeThroughProxy(
  app: FastifyInstance,
  upstreamUrl: string,
  handle: (request: FastifyRequest, reply: FastifyReply) => void,
): Promise<void> {
  app.addHook('onRoute', (route) => {
    const proxied = route.handler;
    route.handler = function (request, reply) {
      if (request.raw.headers.upgrade === undefined) return handle(request, reply);
      return proxied.call(this, request, reply);
    };
  });
  await app.register(httpProxy, {
    upstream: upstreamUrl,
    disableRequestLogging: true,
    handler: handle,
  });
}

/** Sends the request on and streams the answer back; an upstream without an answer gives a 503 problem. */
export function forward(
  upstream: Upstream,
  request: IncomingMessage,
  response: ServerResponse,
  exchange: Exchange,
  { trusted, maxBodyBytes, baseUrl, upgrades, stalls }: ForwardContext,
): void {
  if (isAbandoned(response)) {
    response.destroy();
    return;
  }
  const { target } = exchange;
  if (target === undefined) throw new TypeError('forward needs a normalised target');
  const options = {
    path: upstream.basePath + target.path + target.search,
    method: exchange.method,
    headers: upstreamFields(request, exchange, trusted.has(request.socket)),
    body: exchange.body ?? (hasBody(request) ? new UploadBody(request, response, maxBodyBytes) : null),
  };
  const head = upgrades.headOf(request);
  if (head === undefined) new Relay(upstream, options, response, exchange, baseUrl).start();
  else
    new TunnelRelay(upstream, { ...options, upgrade: 'websocket' }, response, exchange, baseUrl, {
      head,
      stalls,
    }).start();
}

/** The fields that an upstream sees: the client's end-to-end ones, and what the gateway says of the request. */
export function upstreamFields(
  request: IncomingMessage,
  { requestId, caller }: Exchange,
  isTrusted: boolean,
): string[] {
  const { headers, rawHeaders } = request;
  const fields = requestFields(rawHeaders, headers.connection, isTrusted);
  fields.push('X-Request-Id', requestId);
  // RFC 9110 section 10.1.4: the one transfer parameter that reaches through, for trailers are passed on.
  if (headers.te !== undefined && TRAILERS.test(`${headers.te}`)) fields.push('TE', 'trailers');
  pushForwarded(fields, request, isTrusted);
  if (caller === undefined) return fields;
  const { id, type } = caller.principal;
  fields.push('X-Account-Id', caller.account, 'X-Principal-Id', id, 'X-Principal-Type', type);
  if (caller.organization !== undefined) fields.push('X-Organization-Id', caller.organization);
  return fields;
}
