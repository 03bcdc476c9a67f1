/** What a failure of the upstream means: which words the client gets, and whether another try is safe. */
import { Refusal } from '../../domain/problems.ts';
import type { Repeat, Transfer, UpstreamRequest } from '../../http/client/request.ts';
import { ABORTED, BODY_TIMEOUT, CONNECT_TIMEOUT, HEADERS_TIMEOUT } from '../../http/message/errors.ts';
import { BodyError } from '../../http/message/whole-body.ts';

/** Methods that may be sent twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Whether a request may be sent again. A body that the upstream may have seen is not kept for that. */
export function isRepeatable(repeat: Repeat, { method, body }: UpstreamRequest): boolean {
  return repeat === 'any' || (repeat === 'idempotent' && body === null && IDEMPOTENT.has(method));
}

/** The upstream has no room for such a request. */
export const UPSTREAM_BUSY = unavailable('The service behind the gateway is too busy.');

const TIMEOUTS: ReadonlySet<string> = new Set([HEADERS_TIMEOUT, BODY_TIMEOUT]);

const UNREACHABLE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'ETIMEDOUT',
  CONNECT_TIMEOUT,
]);

/** Whether the upstream is why a request was not sent: there was no connection, and neither did the client leave nor its body break. */
export function isUnsent(error: Error, transfer: Transfer | undefined): boolean {
  if (transfer === undefined || transfer.isConnected) return false;
  return !(error instanceof BodyError) && codeOf(error) !== ABORTED;
}

/** The message for the client. It omits the cause, which names internal addresses. */
export function refusalOf(error: Error): Refusal {
  if (error instanceof BodyError) return error.refusal;
  const code = codeOf(error);
  if (TIMEOUTS.has(code)) return unavailable('The service behind the gateway did not answer in time.');
  if (UNREACHABLE.has(code)) return unavailable('The service behind the gateway cannot be reached.');
  return unavailable('The service behind the gateway did not answer.');
}

/** The error's code, for the log. */
export function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.name;
}

function unavailable(detail: string): Refusal {
  return new Refusal('ServiceUnavailable', detail);
}
