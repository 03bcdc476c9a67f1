/** Why an upstream gave no complete response. The codes reach the access log as `upstreamError`. */

/** No connection within the time allowed, TLS handshake included. */
export const CONNECT_TIMEOUT = 'UPSTREAM_CONNECT_TIMEOUT';
/** No response header within the time allowed, or an upload that the upstream stopped reading. */
export const HEADERS_TIMEOUT = 'UPSTREAM_HEADERS_TIMEOUT';
/** A silence within a response body longer than allowed. */
export const BODY_TIMEOUT = 'UPSTREAM_BODY_TIMEOUT';
/** A response that breaks HTTP/1.1, or that two parsers could read differently. */
export const MALFORMED = 'UPSTREAM_MALFORMED';
/** A tunnel that carried nothing for longer than allowed. */
export const TUNNEL_IDLE = 'UPSTREAM_TUNNEL_IDLE';
/** The upstream closed the connection before its response was complete. */
export const CLOSED = 'UPSTREAM_CLOSED';
/** The client left, or the gateway is shutting down. */
export const ABORTED = 'UPSTREAM_ABORTED';
/** A request that cannot be written as HTTP/1.1: nothing of it was sent. */
export const UNSENDABLE = 'UPSTREAM_UNSENDABLE';

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
