import type { Payer } from '../domain/caller.ts';
import type { Traffic } from '../domain/operation.ts';
import type { RECEIPT_EVENTS } from '../domain/settlement/settlement.ts';
import type { Operation, RequestContext } from '../stages/request-context.ts';

/** Counts tunnels. */
export interface TunnelObserver {
  tunnelOpened(traffic: Traffic): void;
  /** Called once for each tunnel that was opened. */
  tunnelClosed(traffic: Traffic): void;
}

/** An upstream, and the requests that wait for their turn there. */
export interface UpstreamQueue {
  /** Path prefix of its requests; empty for the main one. */
  readonly prefix: string;
  readonly waiting: number;
  readonly present: number;
  /** Most requests that may be there at once. */
  readonly limit: number;
  /** The payers whose requests have waited for the longest time, the longest first. */
  waitingPayers(most: number): readonly WaitingPayer[];
  /** The payers that have the most requests there. Only the first thousands are looked at. */
  presentPayers(most: number): readonly PresentPayer[];
}

/** An Account, or a client's address on public and uncharged traffic, and its requests at an upstream. */
export interface PresentPayer {
  readonly traffic: Traffic;
  readonly id: string;
  readonly present: number;
}

/** One with requests that wait for their turn. */
export interface WaitingPayer extends PresentPayer {
  readonly waiting: number;
  /** How long the first of them has waited. */
  readonly longestMs: number;
}

/** Receives the events that metrics count. */
export interface GatewayObserver extends TunnelObserver {
  /** A response was sent in full, or the client disconnected. The status is 0 where it left before a response began. */
  requestFinished(context: RequestContext, status: number, totalMs: number): void;
  /** Shows the queues of the upstreams, which are read at each scrape. */
  showUpstreams(upstreams: readonly UpstreamQueue[]): void;
  /** What became of the receipt of a held decision. */
  receipt(event: (typeof RECEIPT_EVENTS)[number]): void;
  /** A decision that a program held has cost so many points. They are counted here, and not when it was made. */
  heldEnded(payer: Payer, operation: Operation, points: number): void;
  /** An authenticated caller asked for an operation that no document lists. */
  unlistedOperation(method: string): void;
}
