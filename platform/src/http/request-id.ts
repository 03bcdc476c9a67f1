import { randomUUID } from 'node:crypto';

/** Contains no characters that could forge a log line. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The request id of an `X-Request-Id` header if it is valid, otherwise a new one. */
export function requestIdFrom(header: unknown): string {
  return typeof header === 'string' && REQUEST_ID.test(header) ? header : randomUUID();
}
