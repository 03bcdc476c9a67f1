import type { IncomingMessage, ServerResponse } from 'node:http';
import { requestIdFrom } from '../../domain/request-id.ts';
import type { GatewayDependencies } from '../dependencies.ts';
import { allowedOrigin } from '../http/cors.ts';
import type { RequestContext } from '../request-context.ts';

/** Creates a request's context, and counts and logs the request when it ends, for whatever reason. */
export function beginRequest(
  request: IncomingMessage,
  response: ServerResponse,
  parts: GatewayDependencies,
): RequestContext {
  const requestId = requestIdFrom(request.headers['x-request-id']);
  const context: RequestContext = {
    requestId,
    method: request.method ?? '',
    startedMs: performance.now(),
    corsOrigin: allowedOrigin(parts.cors, request),
  };
  if (parts.isDraining()) response.shouldKeepAlive = false;
  response.on('close', () => {
    const totalMs = performance.now() - context.startedMs;
    const isAnswered = response.headersSent || context.upstreamStatus !== undefined;
    const status = isAnswered ? response.statusCode : 0;
    parts.observer.requestFinished(context, status, totalMs);
    parts.accessLog?.write(context, status, totalMs);
  });
  return context;
}
