import type { Socket } from 'node:net';
import type { UpstreamRequest } from '../../http/client/request.ts';
import { countBuffer } from '../../http/message/buffer-garbage.ts';
import { TUNNEL_IDLE } from '../../http/message/errors.ts';
import type { ResponseHead } from '../../http/message/head/response-head.ts';
import { SendTimeout } from '../../http/server/stalls.ts';
import type { TunnelObserver } from '../../observe/gateway-observer.ts';
import type { PortDependencies, PortRequest } from '../entrance.ts';
import { Relay, trafficOf } from './relay.ts';
import type { Upstream } from './upstreams.ts';

/**
 * Relays the answer to a WebSocket handshake: a refusal as any response, a 101 as the beginning of a tunnel. It keeps its place among
 * the upstream's connections until it closes. Its bytes are relayed as they are, so that extensions and subprotocols are the
 * client's and the upstream's own affair.
 */
export class TunnelRelay extends Relay {
  readonly #limits: TunnelLimits;
  readonly #observer: TunnelObserver;

  constructor(
    upstream: Upstream,
    request: Omit<UpstreamRequest, 'handler'>,
    context: PortRequest,
    dependencies: PortDependencies,
  ) {
    const onUpgrade = (head: ResponseHead, behind: Socket) => this.#open(head, behind);
    super(upstream, { ...request, upgrade: { protocol: 'websocket', onUpgrade } }, context, dependencies);
    this.#limits = {
      idleTimeoutMs: upstream.tunnelIdleTimeoutMs,
      sendTimeoutMs: dependencies.listen.sendTimeoutMs,
    };
    this.#observer = dependencies.observer;
  }

  #open(head: ResponseHead, behind: Socket): void {
    this.detach();
    const { context, exchange } = this;
    this.#count(behind);
    this.noteHead(head);
    const lines = this.linesOf(head);
    lines.add('Connection', 'Upgrade');
    lines.add('Upgrade', 'websocket');
    const client = exchange.switchProtocols(lines, behind);
    join(client, behind, this.#limits, () => {
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

/** How long a tunnel may carry nothing once one of its sides has ended. */
const CLOSING_MS = 10_000;

/** How often a side that has ended is looked at until it has read everything. */
const CHECK_MS = 1_000;

/** How long a side that was sent everything may take to close. */
const LINGER_MS = 1_000;

/** How long a tunnel may make no progress. */
export interface TunnelLimits {
  /** For a tunnel that carries nothing. */
  readonly idleTimeoutMs: number;
  /** For a side that does not read. */
  readonly sendTimeoutMs: number;
}

/**
 * Makes each side's bytes the other's. A side that ends is ended at the other one too, behind everything that it sent; the rest
 * of the other direction still arrives. A side that breaks, or has closed, closes the other one.
 *
 * @param onIdle called before both sides are closed because nothing was carried for `idleTimeoutMs`
 */
export function join(
  client: Socket,
  behind: Socket,
  { idleTimeoutMs, sendTimeoutMs }: TunnelLimits,
  onIdle: () => void,
): void {
  let isEnding = false;
  // Whatever a tunnel carries is read from or written to the upstream's side.
  const wait = () => behind.setTimeout(isEnding ? Math.min(idleTimeoutMs, CLOSING_MS) : idleTimeoutMs);
  const onEnd = () => {
    isEnding = true;
    wait();
  };
  for (const side of [client, behind]) {
    side.allowHalfOpen = true;
    if (side.readableEnded) isEnding = true;
    else side.once('end', onEnd);
  }
  behind.on('timeout', () => {
    if (isFlushing(client) || isFlushing(behind)) {
      wait();
      return;
    }
    if (!isEnding) onIdle();
    client.destroy();
    behind.destroy();
  });
  wait();
  pass(client, behind, sendTimeoutMs);
  pass(behind, client, sendTimeoutMs);
}

function pass(from: Socket, to: Socket, sendTimeoutMs: number): void {
  // Node destroys the socket, which then closes.
  from.on('error', ignore);
  from.on('close', () => {
    if (to.writableEnded) finish(to, sendTimeoutMs);
    else to.destroy();
  });
  from.on('data', countBuffer).pipe(to);
}

/** Whether its end waits behind other bytes. A client that does not read them is disconnected by `Stalls`. */
function isFlushing({ writableEnded, writableFinished, destroyed }: Socket): boolean {
  return writableEnded && !writableFinished && !destroyed;
}

/**
 * Closes a side that is ended, once everything has been sent, or if it does not read for `sendTimeoutMs`. What still arrives is dropped.
 * Nobody else looks at the upstream's side once the client's has closed.
 */
function finish(side: Socket, sendTimeoutMs: number): void {
  if (side.destroyed) return;
  const linger = () => {
    const timer = setTimeout(() => side.destroy(), LINGER_MS);
    side.once('close', () => clearTimeout(timer));
  };
  if (side.writableFinished) linger();
  else {
    side.once('finish', linger);
    closeUnread(side, sendTimeoutMs);
  }
  side.resume();
}

function closeUnread(side: Socket, sendTimeoutMs: number): void {
  const sent = new SendTimeout(side);
  const check = () => sent.check(sendTimeoutMs, performance.now());
  check();
  const timer = setInterval(check, Math.min(CHECK_MS, Math.ceil(sendTimeoutMs / 4)));
  side.once('close', () => clearInterval(timer));
}

function ignore(): void {}
