/**
 * WebSocket connections, byte for byte: the upgrade goes to the upstream with every end-to-end field, and once it is
 * accepted the two sockets are joined. Nothing is framed anew, so that extensions and subprotocols are the client's
 * and the upstream's own affair.
 */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { countBuffer } from '../http/buffer-garbage.ts';
import { responseFields } from '../http/headers.ts';
import type { Stalls } from '../http/stalls.ts';
import type { RequestContext } from '../request-context.ts';
import { gatewayFields } from '../respond.ts';
import type { UpstreamRequest } from './http1/request.ts';
import type { ResponseHead } from './http1/response-head.ts';
import { headText, Relay } from './relay.ts';
import type { Upstream } from './upstreams.ts';

interface TunnelEnds {
  /** What the client had already sent behind its request. */
  readonly head: Buffer;
  readonly stalls: Stalls;
}

/** Relays the answer to an upgrade: a refusal as any response, a 101 as the beginning of a tunnel. */
export class TunnelRelay extends Relay {
  readonly #upstream: Upstream;
  readonly #ends: TunnelEnds;

  constructor(
    upstream: Upstream,
    request: Omit<UpstreamRequest, 'handler'>,
    response: ServerResponse,
    context: RequestContext,
    baseUrl: string,
    ends: TunnelEnds,
  ) {
    const onUpgrade = (head: ResponseHead, behind: Duplex) => this.#join(head, behind);
    super(
      upstream,
      { ...request, upgrade: { protocol: 'websocket', onUpgrade } },
      response,
      context,
      baseUrl,
    );
    this.#upstream = upstream;
    this.#ends = ends;
  }

  #join({ status, fields: received, connection }: ResponseHead, behind: Duplex): void {
    this.leave();
    const { response, context } = this;
    const { socket } = response.req;
    context.upstreamStatus = status;
    const fields = responseFields(received, connection, status);
    this.#upstream.references.rewrite(fields, response.req);
    fields.push(...gatewayFields(context), 'Connection', 'Upgrade', 'Upgrade', 'websocket');
    response.statusCode = status;
    socket.write(headText(status, 'Switching Protocols', fields), 'latin1');
    const { head, stalls } = this.#ends;
    if (head.length > 0) behind.write(head);
    socket.setTimeout(0);
    stalls.watch(behind);
    join(socket, behind);
  }
}

/** Each side's bytes become the other's; when one ends or breaks, so does the other. */
function join(client: Duplex, behind: Duplex): void {
  pass(client, behind);
  pass(behind, client);
}

function pass(from: Duplex, to: Duplex): void {
  from.on('error', () => to.destroy());
  from.on('close', () => {
    if (!to.writableEnded) to.destroy();
  });
  from.on('data', countBuffer).pipe(to);
}
