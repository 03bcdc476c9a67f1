/**
 * The short way of plain requests, in front of Node's HTTP server: whole requests that every parser reads in the same way are read
 * and answered here, at a lower cost. Everything else goes Node's way, with every byte.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ListenSettings } from '../http/server.ts';
import type { Serve } from '../http/turns.ts';
import { connectionEvent } from '../tls/server.ts';
import { EdgeConnection } from './connection.ts';
import type { EdgeRequest } from './request.ts';
import type { EdgeResponse } from './response.ts';

/** How often connections are checked for having waited too long: a quarter of the shortest time-out, or more often. */
const MAX_CHECK_MS = 1_000;

export class Edge {
  readonly limits: ListenSettings;
  readonly open = new Set<EdgeConnection>();
  readonly #server: Server;
  readonly #serve: Serve;
  /** Connections that belong to Node's server, for good. */
  readonly #handedOver = new WeakSet<Socket>();

  /** Puts the edge in front of a server, before anything else listens for its connections. */
  constructor(server: Server, limits: ListenSettings, serve: Serve) {
    this.limits = limits;
    this.#server = server;
    this.#serve = serve;
    const event = connectionEvent(server);
    const [accept] = server.listeners(event) as ((socket: Socket) => void)[];
    if (accept === undefined) throw new TypeError('the server takes no connections');
    server.off(event, accept).prependListener(event, (socket: Socket) => {
      if (this.#handedOver.has(socket)) accept.call(server, socket);
      else this.open.add(new EdgeConnection(this, socket));
    });
    const shortestMs = Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs, limits.keepAliveTimeoutMs);
    const checkMs = Math.min(MAX_CHECK_MS, Math.ceil(shortestMs / 4));
    const timer = setInterval(() => this.#checkTimes(checkMs), checkMs).unref();
    server.once('close', () => clearInterval(timer));
    this.#closeWith(server);
  }

  serve(request: EdgeRequest, response: EdgeResponse): void {
    this.#serve(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  }

  /** Gives a connection to Node's server; the event may be emitted for this. */
  handOver(connection: EdgeConnection): void {
    this.open.delete(connection);
    this.#handedOver.add(connection.socket);
    this.#server.emit(connectionEvent(this.#server), connection.socket);
  }

  #checkTimes(checkMs: number): void {
    const nowMs = performance.now();
    for (const connection of this.open) connection.checkTime(nowMs, checkMs);
  }

  /** What closes connections of the server closes those of the edge as well. */
  #closeWith(server: Server): void {
    const { closeIdleConnections, closeAllConnections } = server;
    server.closeIdleConnections = () => {
      closeIdleConnections.call(server);
      for (const connection of this.open) if (connection.isIdle) connection.socket.destroy();
    };
    server.closeAllConnections = () => {
      closeAllConnections.call(server);
      for (const connection of this.open) connection.socket.destroy();
    };
  }
}
