import type { ServerResponse } from 'node:http';
import { closeAfterResponse, isAbandoned, isUploadUnfinished } from './http/lingering-close.ts';
import { problemBody, type Refusal, UNCOUNTED } from './problems.ts';
import type { RequestContext } from './request-context.ts';

/**
 * The fields that the gateway adds to every response: the request id, and what the charge came to. A request that
 * was never charged has no RateLimit fields. After a charge there is either RateLimit or `Service-RateLimit-Mode: degraded`
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

/** Whether the request could not be counted and was served anyway; a 422 or an upstream's failure changes nothing of it. */
export function isDegraded({ charged, refusal }: RequestContext): boolean {
  return charged?.outcome === 'uncounted' && refusal !== UNCOUNTED;
}

/**
 * Answers with a problem body and ends the response. The rest of a refused upload is read where it is short;
 * otherwise the connection closes behind the answer, which arrives first.
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
  fields.push('Content-Type', 'application/problem+json', 'Content-Length', `${bytes}`);
  // A shared cache may keep a 404 or a 405 that says nothing of it (RFC 9110 section 15.1).
  fields.push('Cache-Control', 'no-store');
  if (refusal.closes || isUploadUnfinished(response.req)) {
    fields.push('Connection', 'close');
    closeAfterResponse(response.req);
  }
  response.writeHead(refusal.status, fields);
  endWith(response, text, bytes === text.length ? 'latin1' : 'utf8');
}

/**
 * Ends a response whose whole body is there: header and body in one string and one write. Node's own `end(body)` adds
 * an empty third piece, and gathers all into a slower kind of write.
 */
export function endWith(response: ServerResponse, body: string, encoding: 'latin1' | 'utf8'): void {
  response.write(body, encoding);
  response.socket?.uncork();
  response.end();
}
