import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayParts } from '../parts.ts';
import type { Exchange } from '../types.ts';
import { writeAccessLine } from './access-log.ts';

/** A request id that a client may choose (DESIGN: 1 to 128 of these), so that no log line can be forged with one. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** What is known of a request at its beginning; its end is counted and logged, however it comes. */
export function beginExchange(
  request: IncomingMessage,
  response: ServerResponse,
  parts: GatewayParts,
): Exchange {
  const wanted = request.headers['x-request-id'];
  const requestId = typeof wanted === 'string' && SANE_REQUEST_ID.test(wanted) ? wanted : randomUUID();
  const exchange: Exchange = { requestId, method: request.method ?? '', startedMs: performance.now() };
  if (parts.isDraining()) response.shouldKeepAlive = false;
  response.on('close', () => {
    const totalMs = performance.now() - exchange.startedMs;
    parts.observer.requestFinished(exchange, response.statusCode, totalMs);
    if (parts.accessLog) writeAccessLine(parts.log, exchange, response.statusCode, totalMs);
  });
  return exchange;
}
