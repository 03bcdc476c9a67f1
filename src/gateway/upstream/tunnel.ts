/**
 * WebSocket connections, byte for byte: the upgrade goes to the upstream with every end-to-end field, and once it is
 * accepted the two sockets are joined. Nothing is framed anew, so that extensions and subprotocols are the client's
 * and the upstream's own affair.
 */
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import { responseFields } from '../http/headers.ts';
import { gatewayFields } from '../respond.ts';
import type { Exchange } from '../types.ts';
import { Relay } from './relay.ts';
import type { Upstream } from './upstreams.ts';

/** Relays the answer to an upgrade: a refusal as any response, a 101 as the beginning of a tunnel. */
export class TunnelRelay extends Relay {
  readonly #upstream: Upstream;
  readonly #response: ServerResponse;
  readonly #exchange: Exchange;
  readonly #head: Buffer;

  /** @param head what the client had already sent behind its request */
  constructor(
    upstream: Upstream,
    options: Dispatcher.DispatchOptions,
    response: ServerResponse,
    exchange: Exchange,
    baseUrl: string,
    head: Buffer,
  ) {
    super(upstream, options, response, exchange, baseUrl);
    this.#upstream = upstream;
    this.#response = response;
    this.#exchange = exchange;
    this.#head = head;
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
    behind: Duplex,
  ): void {
    this.#upstream.atOnce--;
    const response = this.#response;
    const { socket } = response.req;
    this.#exchange.upstreamStatus = status;
    const fields = responseFields(headers, status);
    fields.push(...gatewayFields(this.#exchange), 'Connection', 'Upgrade', 'Upgrade', 'websocket');
    response.statusCode = status;
    socket.write(headOf(status, fields), 'latin1');
    if (this.#head.length > 0) behind.write(this.#head);
    socket.setTimeout(0);
    join(socket, behind);
  }
}

function headOf(status: number, fields: readonly string[]): string {
  let head = `HTTP/1.1 ${status} Switching Protocols\r\n`;
  for (let index = 0; index < fields.length; index += 2) head += `${fields[index]}: ${fields[index + 1]}\r\n`;
  return `${head}\r\n`;
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
  from.pipe(to);
}
