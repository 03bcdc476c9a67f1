import type { RequestContext } from '../stages/request-context.ts';
import type { TunnelObserver } from '../upstream/tunnel.ts';

/** Receives the events that metrics count. */
export interface GatewayObserver extends TunnelObserver {
  /** A response was sent in full, or the client disconnected. The status is 0 where it left before a response began. */
  requestFinished(context: RequestContext, status: number, totalMs: number): void;
  /** An authenticated caller asked for an operation that no document lists. */
  unlistedOperation(method: string): void;
}
