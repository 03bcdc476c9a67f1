import type { IncomingMessage, ServerResponse } from 'node:http';
import { requestIdFrom } from '../../domain/request-id.ts';
import type { GatewayDependencies } from '../dependencies.ts';
import { allowedOrigin } from '../http/cors.ts';
import type { TrustedProxies } from '../http/forwarded.ts';
import type { RequestContext } from '../request-context.ts';
import { traceparentFrom } from './traceparent.ts';

/**
 * Creates a request's context, and counts and logs the request when it ends, for whatever reason.
 *
 * @param asked what a proxy asks about, where it asks for a decision
 */
export function beginRequest(
  request: IncomingMessage,
  response: ServerResponse,
  parts: GatewayDependencies & { readonly trusted: TrustedProxies },
  asked?: Pick<RequestContext, 'method' | 'protocol'>,
): RequestContext {
  const requestId = requestIdFrom(request.headers['x-request-id']);
  const startedMs = performance.now();
  const method = asked?.method ?? request.method ?? '';
  const spans = parts.tracing?.begin(request, method, startedMs);
  const context: RequestContext = {
    requestId,
    method,
    startedMs,
    clientAddress: parts.trusted.addressOf(request),
    traceparent: spans?.traceparent ?? traceparentFrom(request.headers.traceparent),
    spans,
    protocol: asked?.protocol,
    corsOrigin: allowedOrigin(parts.cors, request),
  };
  if (parts.isDraining()) response.shouldKeepAlive = false;
  response.on('close', () => {
    const totalMs = performance.now() - context.startedMs;
    const isAnswered = response.headersSent || context.upstreamStatus !== undefined;
    // A proxy may be sent another status; its client gets the refusal's own.
    const { statusCode } = response;
    const answered = context.protocol === undefined ? statusCode : (context.refusal?.status ?? statusCode);
    const status = isAnswered ? answered : 0;
    parts.observer.requestFinished(context, status, totalMs);
    parts.accessLog?.write(context, status, totalMs);
    spans?.end(context, status, totalMs);
  });
  return context;
}
