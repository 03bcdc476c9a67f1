import type { ServerResponse } from 'node:http';
import { pushCors } from './http/cors.ts';
import { closeAfterResponse, dropUpload, isAbandoned, isUploadUnfinished } from './http/lingering-close.ts';
import { endThisTurn } from './http/whole-response.ts';
import { problemBody, type Refusal, UNCOUNTED } from './problems.ts';
import type { RequestContext } from './request-context.ts';

/**
 * The fields that the gateway adds to every response: the request id and the result of the charge. A request that
 * was not charged has no RateLimit fields. After a charge there is either RateLimit or `Service-RateLimit-Mode: degraded`
 * (contract 8.1).
 */
export function gatewayFields(context: RequestContext): string[] {
  const { requestId, charged } = context;
  const fields = ['X-Request-Id', requestId];
  if (charged === undefined) return fields;
  // Both are empty where every limit is a shadow; a field without a member is not sent (RFC 9651 section 3.1).
  if (charged.policy !== '') fields.push('RateLimit-Policy', charged.policy);
  if (charged.outcome !== 'uncounted') {
    if (charged.rateLimit !== '') fields.push('RateLimit', charged.rateLimit);
  } else if (isDegraded(context)) fields.push('Service-RateLimit-Mode', 'degraded');
  return fields;
}

/** Whether the request was served uncounted; a later 422 or upstream failure does not change that. */
export function isDegraded({ charged, refusal }: RequestContext): boolean {
  return charged?.outcome === 'uncounted' && refusal !== UNCOUNTED;
}

/**
 * Sends a problem body and ends the response. If the rest of a refused upload is short, it is read and dropped; otherwise the
 * connection closes once the response has arrived.
 */
export function respond(
  response: ServerResponse,
  context: RequestContext,
  refusal: Refusal,
  baseUrl: string,
): void {
  context.refusal = refusal;
  if (isAbandoned(response)) {
    response.destroy();
    return;
  }
  const { text, bytes } = problemBody(refusal, context.requestId, baseUrl);
  const fields = gatewayFields(context);
  for (const name in refusal.headers) fields.push(name, refusal.headers[name] ?? '');
  pushCors(fields, context.corsOrigin);
  fields.push('Content-Type', 'application/problem+json', 'Content-Length', `${bytes}`);
  // Without it, a shared cache may store a 404 or a 405 (RFC 9110 section 15.1).
  fields.push('Cache-Control', 'no-store');
  if (refusal.closes || isUploadUnfinished(response.req)) {
    fields.push('Connection', 'close');
    closeAfterResponse(response.req);
  }
  dropUpload(response.req);
  response.writeHead(refusal.status, fields);
  endThisTurn(response, { text, encoding: bytes === text.length ? 'latin1' : 'utf8' });
}
