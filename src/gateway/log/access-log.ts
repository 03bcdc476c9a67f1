import type { Logger } from 'pino';
import type { Exchange } from '../types.ts';

/** One line a request, with what was charged and why; never a token, a query or a body. */
export function writeAccessLine(log: Logger, exchange: Exchange, status: number, totalMs: number): void {
  const { requestId, method, target, operation, caller, charged, refusal, chargeMs, upstreamMs } = exchange;
  log.info(
    {
      requestId,
      method,
      path: target?.path,
      operation: operation?.id,
      account: caller?.account,
      organization: caller?.organization,
      principal: caller?.principal.id,
      cost: operation?.cost,
      outcome: charged?.outcome ?? (refusal === undefined ? 'free' : 'refused'),
      reason: charged?.outcome === 'uncounted' ? charged.reason : refusal?.code,
      shadowDenied: charged?.outcome === 'admitted' ? charged.shadowDenied : undefined,
      status,
      upstreamStatus: exchange.upstreamStatus,
      upstreamError: exchange.upstreamError,
      chargeMs: rounded(chargeMs),
      upstreamMs: rounded(upstreamMs),
      totalMs: rounded(totalMs),
    },
    'request',
  );
}

/** Microseconds are as fine as these clocks are worth. */
function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1000) / 1000;
}
