import type { Registry } from 'prom-client';
import { TRAFFICS } from '../../domain/operation.ts';
import { TUNNELS_BUSY } from '../../domain/problems.ts';
import { TUNNEL_IDLE } from '../../http/message/errors.ts';
import type { RequestContext } from '../../stages/request-context.ts';
import type { TunnelObserver } from '../gateway-observer.ts';
import { counter, gauge } from './register.ts';

interface TunnelMetrics extends TunnelObserver {
  /** Counts a request for a tunnel that was refused, or whose tunnel was closed. */
  countTunnelEnd(context: RequestContext): void;
}

/** Metrics of WebSocket connections. */
export function tunnelMetrics(registry: Registry): TunnelMetrics {
  const open = gauge(
    registry,
    'weir_tunnels',
    'WebSocket connections that are open, by whose share of the upstream connections they use.',
    'traffic',
  );
  for (const traffic of TRAFFICS) open.set({ traffic }, 0);
  const refused = counter(
    registry,
    'weir_tunnels_refused_total',
    'WebSocket connections refused because others used their whole share of the upstream connections.',
  );
  const idle = counter(
    registry,
    'weir_tunnels_idle_total',
    'WebSocket connections closed because they carried nothing for upstream.tunnelIdleTimeoutMs.',
  );
  return {
    tunnelOpened: (traffic) => open.inc({ traffic }),
    tunnelClosed: (traffic) => open.dec({ traffic }),
    countTunnelEnd({ refusal, upstreamError }) {
      if (refusal === TUNNELS_BUSY) refused.inc();
      else if (upstreamError === TUNNEL_IDLE) idle.inc();
    },
  };
}
