/**
 * Forwards what was charged. @fastify/http-proxy owns the route and the upgrade; the request itself goes through
 * undici's `dispatch` straight into the raw response, because reply.from would buffer errors into 500s, retry
 * GETs and copy every chunk through two more streams.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import httpProxy from '@fastify/http-proxy';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Dispatcher, Pool } from 'undici';
import { requestFields, responseFields } from './headers.ts';
import { Refusal } from './problems.ts';
import { gatewayFields, respond } from './respond.ts';
import type { Exchange } from './types.ts';

/** Sockets to the upstream per gateway; each carries one request at a time, so this bounds the upstream's load. */
const MAX_UPSTREAM_SOCKETS = 512;

export interface Upstream {
  readonly pool: Pool;
  /** Path of the upstream's URL, put before every canonical path; empty for none. */
  readonly basePath: string;
}

/** The pool of connections to one upstream. @param url `http://host:port`, with a base path where it has one */
export function openUpstream(url: string): Upstream {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, { connections: MAX_UPSTREAM_SOCKETS, pipelining: 1 });
  return { pool, basePath: pathname === '/' ? '' : pathname.replace(/\/$/, '') };
}

/** Routes every admitted request to `handle`. */
export async function routeThroughProxy(
  app: FastifyInstance,
  upstreamUrl: string,
  handle: (request: FastifyRequest, reply: FastifyReply) => void,
): Promise<void> {
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
  baseUrl: string,
): void {
  const { target } = exchange;
  if (target === undefined) throw new TypeError('forward needs a normalised target');
  const relay = new Relay(response, exchange, baseUrl);
  upstream.pool.dispatch(
    {
      path: upstream.basePath + target.path + target.search,
      method: exchange.method,
      headers: upstreamFields(request, exchange),
      body: hasBody(request) ? request : null,
    },
    relay,
  );
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

function upstreamFields(request: IncomingMessage, { requestId, caller }: Exchange): string[] {
  const { headers, rawHeaders, socket } = request;
  const fields = requestFields(rawHeaders, headers.connection);
  fields.push('X-Request-Id', requestId);
  fields.push('X-Forwarded-For', socket.remoteAddress ?? 'unknown', 'X-Forwarded-Proto', 'http');
  if (headers.host !== undefined) fields.push('X-Forwarded-Host', headers.host);
  if (caller === undefined) return fields;
  fields.push('X-Account-Id', caller.account, 'X-Principal-Id', caller.principal.id);
  if (caller.organization !== undefined) fields.push('X-Organization-Id', caller.organization);
  return fields;
}

/** Copies one upstream response into the client's, chunk by chunk, as fast as the slower of the two. */
class Relay implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #exchange: Exchange;
  readonly #baseUrl: string;
  readonly #sentMs = performance.now();

  constructor(response: ServerResponse, exchange: Exchange, baseUrl: string) {
    this.#response = response;
    this.#exchange = exchange;
    this.#baseUrl = baseUrl;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const response = this.#response;
    const abortWhenGone = () => {
      if (!response.writableFinished) controller.abort(new Error('the client went away'));
    };
    if (response.destroyed) abortWhenGone();
    else response.once('close', abortWhenGone);
    response.on('drain', () => controller.resume());
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    const exchange = this.#exchange;
    exchange.upstreamMs = performance.now() - this.#sentMs;
    exchange.upstreamStatus = status;
    const fields = responseFields(headers);
    fields.push(...gatewayFields(exchange));
    this.#response.writeHead(status, fields);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    const response = this.#response;
    // Cut short, the client sees a truncated body as one: the status line is already gone.
    if (response.headersSent || response.destroyed) response.destroy();
    else respond(response, this.#exchange, unavailable(), this.#baseUrl);
  }
}

/** No word of why: the cause names internal addresses. */
function unavailable(): Refusal {
  return new Refusal('ServiceUnavailable', 'The service behind the gateway did not answer.');
}
