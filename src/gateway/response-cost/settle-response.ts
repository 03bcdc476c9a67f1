import { type Awaitable, andThen } from '../../domain/awaitable.ts';
import { isRefunded, type Reading, type UnsettledReason } from '../../domain/settlement/settlement.ts';
import { costAtAdmission, type RequestContext } from '../../stages/request-context.ts';
import { refund, settle } from '../../stages/settle.ts';
import type { Store } from '../../store/store.ts';

/**
 * Settles a request whose response has ended or will not end, if its operation asks for that.
 *
 * @param status what the client was sent; 0 if it left before
 * @returns once it is known what the request has cost
 */
export function settleResponse(request: RequestContext, status: number, store: Store): Awaitable<void> {
  const { operation, charged, responseCost, settledCost } = request;
  const settlement = operation?.settlement;
  if (settlement === undefined || charged?.outcome !== 'admitted' || settledCost !== undefined) return;
  if (isRefunded(settlement, status)) {
    refund(request, store);
    return;
  }
  if (settlement.settle === undefined) return;
  if (responseCost === undefined) {
    request.unsettled = status === 101 ? 'tunnel' : status === 0 ? 'abandoned' : 'unanswered';
    return;
  }
  // What the response has stated until now counts.
  const brokenBy = responseCost.isEnded ? undefined : whyUnended(request);
  return andThen(responseCost.finish(), (reading) => note(request, store, reading, brokenBy));
}

/** To be asked at once: a client that left makes its request fail at the upstream as well. */
function whyUnended({ upstreamError }: RequestContext): UnsettledReason {
  return upstreamError === undefined ? 'abandoned' : 'cut';
}

/**
 * A response that did not end gives nothing back, so nobody saves points by leaving early: it costs what it has reserved, or what it has
 * stated until then if that is more.
 */
function note(
  request: RequestContext,
  store: Store,
  { points, problem }: Reading,
  brokenBy: UnsettledReason | undefined,
): void {
  const reason = brokenBy ?? problem;
  if (points !== undefined && (reason === undefined || points > costAtAdmission(request)))
    settle(request, store, points);
  else request.unsettled = reason;
}
