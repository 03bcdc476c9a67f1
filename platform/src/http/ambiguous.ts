import type { IncomingMessage } from 'node:http';
import { PlatformError } from './problems.ts';

/** The header fields that the platform reads. Node joins or drops the second one of a name. */
const SINGLE = [
  ...['content-type', 'idempotency-key', 'x-account-id', 'x-organization-id', 'x-principal-id'],
  'x-principal-type',
];

/** Throws a 400 for a request without Host (RFC 9112 section 3.2), or with two values where there may be one. */
export function refuseAmbiguous({ httpVersion, headers, headersDistinct }: IncomingMessage): void {
  if (httpVersion === '1.1' && headers.host === undefined)
    throw new PlatformError(400, 'BadRequest', 'The request has no Host.');
  const twice = SINGLE.find((name) => (headersDistinct[name]?.length ?? 0) > 1);
  if (twice) throw new PlatformError(400, 'BadRequest', `The request has two header fields ${twice}.`);
}
