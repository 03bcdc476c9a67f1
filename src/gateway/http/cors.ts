/** Lets pages of chosen origins read the gateway's responses (https://fetch.spec.whatwg.org/#http-cors-protocol). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestContext } from '../request-context.ts';
import { hasBody } from './inspect.ts';

export interface CorsSettings {
  /** Origins such as `https://app.example.com`, or `*` for all. */
  readonly origins: readonly string[];
  readonly preflight: 'answer' | 'forward';
  readonly maxAgeSeconds: number;
}

const EXPOSED = 'RateLimit, RateLimit-Policy, Service-RateLimit-Mode, Retry-After, X-Request-Id';

/** The value of Access-Control-Allow-Origin for this request; undefined if its origin is not allowed. */
export function allowedOrigin({ origins }: CorsSettings, { headers }: IncomingMessage): string | undefined {
  const { origin } = headers;
  if (origins.length === 0 || origin === undefined) return undefined;
  return origins.includes('*') ? '*' : origins.find((one) => one === origin);
}

/** Adds what the page needs to read a response. An upstream's own Access-Control-Allow-Origin is kept. */
export function pushCors(fields: string[], origin: string | undefined): void {
  if (origin === undefined) return;
  const isPresent = fields.some(
    (name, index) => index % 2 === 0 && name.toLowerCase() === 'access-control-allow-origin',
  );
  if (!isPresent) fields.push('Access-Control-Allow-Origin', origin);
  fields.push('Access-Control-Expose-Headers', EXPOSED);
  if (origin !== '*') fields.push('Vary', 'Origin');
}

/** Whether the gateway answers this request itself: the question that a browser asks before a request of another origin. */
export function isAnsweredPreflight({ origins, preflight }: CorsSettings, request: IncomingMessage): boolean {
  const { method, headers } = request;
  return (
    origins.length > 0 &&
    preflight === 'answer' &&
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    !hasBody(request)
  );
}

/** Answers a preflight. An origin that is not allowed gets no permission, so the browser refuses the request. */
export function answerPreflight(
  { headers }: IncomingMessage,
  response: ServerResponse,
  { requestId, corsOrigin: origin }: RequestContext,
  methods: readonly string[],
  { maxAgeSeconds }: CorsSettings,
): void {
  const fields = ['X-Request-Id', requestId];
  pushCors(fields, origin);
  if (origin !== undefined) {
    fields.push('Access-Control-Allow-Methods', methods.join(', '));
    const requested = headers['access-control-request-headers'];
    if (requested !== undefined) fields.push('Access-Control-Allow-Headers', `${requested}`);
    fields.push('Access-Control-Max-Age', `${maxAgeSeconds}`);
  }
  fields.push('Vary', 'Access-Control-Request-Headers');
  response.writeHead(204, fields);
  response.end();
}
