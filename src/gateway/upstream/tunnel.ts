import type { Socket } from 'node:net';
import type { UpstreamRequest } from '../../http/client/request.ts';
import { TUNNEL_IDLE } from '../../http/message/errors.ts';
import type { ResponseHead } from '../../http/message/head/response-head.ts';
import type { TunnelObserver } from '../../observe/gateway-observer.ts';
import type { PortRequest } from '../entrance.ts';
import { join } from './join.ts';
import { Relay, trafficOf } from './relay.ts';
import type { Upstream } from './upstreams.ts';

/**
 * Relays the answer to a WebSocket handshake: a refusal as any response, a 101 as the beginning of a tunnel. It keeps its place among
 * the upstream's connections until it closes. Its bytes are relayed as they are, so that extensions and subprotocols are the
 * client's and the upstream's own affair.
 */
export class TunnelRelay extends Relay {
  readonly #idleTimeoutMs: number;
  readonly #observer: TunnelObserver;

  constructor(
    upstream: Upstream,
    request: Omit<UpstreamRequest, 'handler'>,
    context: PortRequest,
    baseUrl: string,
    observer: TunnelObserver,
  ) {
    const onUpgrade = (head: ResponseHead, behind: Socket) => this.#open(head, behind);
    super(upstream, { ...request, upgrade: { protocol: 'websocket', onUpgrade } }, context, baseUrl);
    this.#idleTimeoutMs = upstream.tunnelIdleTimeoutMs;
    this.#observer = observer;
  }

  #open(head: ResponseHead, behind: Socket): void {
    this.detach();
    const { context, exchange } = this;
    this.#count(behind);
    context.upstreamStatus = head.status;
    const lines = this.linesOf(head);
    lines.add('Connection', 'Upgrade');
    lines.add('Upgrade', 'websocket');
    const client = exchange.switchProtocols(lines, behind);
    join(client, behind, this.#idleTimeoutMs, () => {
      context.upstreamError = TUNNEL_IDLE;
    });
  }

  #count(behind: Socket): void {
    const traffic = trafficOf(this.context);
    this.#observer.tunnelOpened(traffic);
    behind.once('close', () => {
      this.leave();
      this.#observer.tunnelClosed(traffic);
    });
  }
}
