import type { Logger } from 'pino';
import type { Caller } from '../../domain/caller.ts';
import type { Charged, RequestContext } from '../request-context.ts';
import { unixUs } from './wall-clock.ts';

/**
 * One line per request, with what was charged and why; never a token, a query or a body. The line is written when the
 * response has ended; `chargedAtUs` is the Unix time at which the store was asked. `weir replay` reads these lines:
 * docs/access-log.md lists the members that it relies on.
 */
export function writeAccessLine(log: Logger, context: RequestContext, status: number, totalMs: number): void {
  const { requestId, method, target, operation, caller, charged, refusal, chargeMs, upstreamMs } = context;
  log.info(
    {
      requestId,
      method,
      path: target?.path,
      operation: operation?.id,
      account: caller?.account,
      organization: caller?.organization,
      organizationLimit: isExempt(caller) ? false : undefined,
      principal: caller?.principal.id,
      kind: operation?.kind,
      cost: operation?.cost,
      personOnly: operation?.personOnly ? true : undefined,
      chargedAtUs: context.chargeAskedMs === undefined ? undefined : unixUs(context.chargeAskedMs),
      outcome: charged?.outcome ?? (refusal === undefined ? 'free' : 'refused'),
      reason: charged?.outcome === 'uncounted' ? charged.reason : refusal?.code,
      bucket: deniedBy(charged),
      shadowDenied: charged?.outcome === 'admitted' ? charged.shadowDenied : undefined,
      status,
      upstreamStatus: context.upstreamStatus,
      upstreamError: context.upstreamError,
      chargeMs: rounded(chargeMs),
      upstreamMs: rounded(upstreamMs),
      totalMs: rounded(totalMs),
    },
    'request',
  );
}

/** Whether the Account has an Organization that its requests are not charged to. */
function isExempt(caller: Caller | undefined): boolean {
  return caller?.organization !== undefined && !caller.hasOrganizationLimit;
}

function deniedBy(charged: Charged | undefined): string | undefined {
  return charged?.outcome === 'denied' ? charged.bucket : undefined;
}

/** Microseconds are as fine as these clocks are worth. */
function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1000) / 1000;
}
