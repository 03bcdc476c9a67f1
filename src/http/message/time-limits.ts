import { BODY_TIMEOUT, CONNECT_TIMEOUT, HEADERS_TIMEOUT, UpstreamError } from './errors.ts';

/** How long an upstream may take; 0 for no limit. */
export interface TimeLimits {
  readonly connectTimeoutMs: number;
  readonly headersTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
}

/** An upstream counts its own limit from an earlier moment than this side does. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

/** How long a connection may be idle whose upstream closes it after `statedMs`. */
export function idleLimitOf(statedMs: number, { keepAliveTimeoutMs }: TimeLimits): number {
  return Math.min(keepAliveTimeoutMs, statedMs - KEEP_ALIVE_MARGIN_MS);
}

/** What a request waits for. A slow client has limits of its own. */
export type Wait = 'connection' | 'client' | 'head' | 'body';

/** The error of a wait that has exceeded its limit; undefined for one that has not. */
export function timeoutOf(wait: Wait, waitedMs: number, limits: TimeLimits): UpstreamError | undefined {
  switch (wait) {
    case 'connection':
      return exceeded(waitedMs, limits.connectTimeoutMs, CONNECT_TIMEOUT, 'no connection in time');
    case 'head':
      return exceeded(waitedMs, limits.headersTimeoutMs, HEADERS_TIMEOUT, 'no response header in time');
    case 'body':
      return exceeded(waitedMs, limits.bodyTimeoutMs, BODY_TIMEOUT, 'a silence within the response body');
    case 'client':
      return undefined;
  }
}

function exceeded(
  waitedMs: number,
  limitMs: number,
  code: string,
  message: string,
): UpstreamError | undefined {
  return limitMs > 0 && waitedMs >= limitMs ? new UpstreamError(code, message) : undefined;
}
