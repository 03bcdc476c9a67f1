import type { IncomingMessage, ServerResponse } from 'node:http';
import { requestIdFrom } from '../../domain/request-id.ts';
import type { GatewayParts } from '../parts.ts';
import type { Exchange } from '../types.ts';
import { writeAccessLine } from './access-log.ts';

/** What is known of a request at its beginning; its end is counted and logged, however it comes. */
export function beginExchange(
  request: IncomingMessage,
  response: ServerResponse,
  parts: GatewayParts,
): Exchange {
  const requestId = requestIdFrom(request.headers['x-request-id']);
  const exchange: Exchange = { requestId, method: request.method ?? '', startedMs: performance.now() };
  if (parts.isDraining()) response.shouldKeepAlive = false;
  response.on('close', () => {
    const totalMs = performance.now() - exchange.startedMs;
    parts.observer.requestFinished(exchange, response.statusCode, totalMs);
    if (parts.accessLog) writeAccessLine(parts.log, exchange, response.statusCode, totalMs);
  });
  return exchange;
}
