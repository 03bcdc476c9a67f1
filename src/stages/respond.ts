import { problemBody, type Refusal, UNCOUNTED } from '../domain/problems.ts';
import type { Exchange } from '../http/exchange.ts';
import { addCors } from '../http/message/fields/cors.ts';
import { FieldLines } from '../http/message/head/field-lines.ts';
import type { RequestContext } from './request-context.ts';

/**
 * Adds the fields that every response has: the request id and the result of the charge. A request that
 * was not charged has no RateLimit fields. After a charge there is either RateLimit or `Service-RateLimit-Mode: degraded`
 * (contract 8.1).
 */
export function addGatewayFields(lines: Pick<FieldLines, 'addOwn'>, context: RequestContext): void {
  const { requestId, charged } = context;
  lines.addOwn('X-Request-Id', requestId);
  if (charged === undefined) return;
  // Both are empty where every limit is a shadow; a field without a member is not sent (RFC 9651 section 3.1).
  if (charged.policy !== '') lines.addOwn('RateLimit-Policy', charged.policy);
  if (isDegraded(context)) lines.addOwn('Service-RateLimit-Mode', 'degraded');
  else if (charged.outcome !== 'uncounted' && charged.rateLimit !== '') {
    lines.addOwn('RateLimit', charged.rateLimit);
  }
}

/**
 * Whether the request was served uncounted, or refused by this replica's part of a limit. A later 422 or upstream failure does not change
 * that.
 */
export function isDegraded({ charged, refusal }: RequestContext): boolean {
  if (charged?.outcome === 'denied') return charged.degraded !== undefined;
  return charged?.outcome === 'uncounted' && refusal !== UNCOUNTED;
}

/**
 * Sends a problem body and ends the response. If the rest of a refused upload is short, it is read and dropped; otherwise the
 * connection closes once the response has arrived.
 *
 * @param sent the refusal as a proxy understands it
 */
export function respond(
  request: RequestContext<Exchange>,
  refusal: Refusal,
  baseUrl: string,
  sent = refusal,
): void {
  const { source: exchange, requestId } = request;
  request.refusal = refusal;
  const { text, bytes } = problemBody(sent, requestId, baseUrl);
  const lines = new FieldLines();
  addGatewayFields(lines, request);
  for (const name in sent.headers) lines.add(name, sent.headers[name] ?? '');
  addCors(lines, request.cors);
  lines.addOwn('Content-Type', 'application/problem+json');
  lines.add('Content-Length', `${bytes}`);
  // Without it, a shared cache may store a 404 or a 405 (RFC 9110 section 15.1).
  lines.addOwn('Cache-Control', 'no-store');
  if (sent.closes) exchange.makeLast();
  exchange.answer(sent.status, lines, { text, encoding: bytes === text.length ? 'latin1' : 'utf8' });
}
