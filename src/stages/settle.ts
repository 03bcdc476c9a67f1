import { randomBytes } from 'node:crypto';
import { countedPart, type Store } from '../store/store.ts';
import type { RequestContext } from './request-context.ts';

/** Names the settlements of this process. */
const PROCESS = randomBytes(12).toString('base64url');
let count = 0;

/** An id that no other settlement has. */
function settlementId(): string {
  count += 1;
  return `${PROCESS}-${count.toString(36)}`;
}

/**
 * Replaces the cost of a request by what it has cost in the end, in points. Limits that count requests keep this one. Does nothing for a
 * request that was not charged, or is settled. Returns at once: the store is asked until it answers or the points no longer count.
 */
export function settle(request: RequestContext, store: Store, cost: number): void {
  apply(request, store, cost, false);
}

/** Gives back all that a request was charged, also in limits that count requests. Otherwise like `settle`. */
export function refund(request: RequestContext, store: Store): void {
  apply(request, store, 0, true);
}

function apply(request: RequestContext, store: Store, cost: number, refundsRequests: boolean): void {
  const { source, decision, asked } = request;
  if (decision?.outcome !== 'admitted' || asked === undefined || source.isPeek === true) return;
  if (request.settledCost !== undefined) return;
  request.settledCost = cost;
  request.isRefunded = refundsRequests;
  if (cost === asked.cost && !refundsRequests) return;
  const { chargedAtUs, buckets } = decision;
  const charge = countedPart(asked, buckets);
  if (charge.buckets.length === 0) return;
  request.settling = store.settle({ charge, chargedAtUs, cost, refundsRequests, id: settlementId() });
}
