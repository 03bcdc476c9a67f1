import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { Exchange } from '../exchange.ts';
import { ClientConnection } from './client-connection.ts';
import { EdgeReader } from './edge/reader.ts';
import type { ParserFeeds } from './node/request-feed.ts';
import type { ListenSettings } from './server.ts';

/** How often connections are checked for having waited too long: a quarter of the shortest time-out, or more often. */
const MAX_CHECK_MS = 1_000;

/** Connections above a limit that still get a 503; beyond these, connections are closed without a response. */
const TOLD_CONNECTIONS = 256;

/** What happens to connections above a number. */
export interface ConnectionLimit {
  readonly max: number;
  /**
   * `refuse`: their requests are refused. `displace`: the oldest connection without a request in progress is closed, so that
   * silent connections cannot keep out a probe. Handshakes count. If every connection is busy, the new one is closed.
   */
  readonly beyond: 'refuse' | 'displace';
}

/** The open connections of a server: it owns each from the first byte to the last. */
export class ClientConnections {
  /** Serves what the edge reads; until it is set, Node's server reads everything. */
  onExchange: ((exchange: Exchange) => void) | undefined;
  readonly server: Server;
  readonly #limits: ListenSettings;
  readonly #limit: ConnectionLimit;
  readonly #open = new Map<Socket, ClientConnection>();
  /**
   * TLS handshakes in progress, by the other end of the connection. Node does not count them as connections, and would wait for them when
   * the server closes.
   */
  readonly #handshakes = new Map<string, { readonly socket: Socket; readonly sinceMs: number }>();
  readonly #accept: (socket: Socket) => void;
  readonly #feeds: ParserFeeds;
  readonly #newForMs: number;

  /** Takes over the connections of a server that nothing else listens to yet. */
  constructor(server: Server, limits: ListenSettings, limit: ConnectionLimit, feeds: ParserFeeds) {
    this.server = server;
    this.#limits = limits;
    this.#limit = limit;
    this.#feeds = feeds;
    const isSecure = server instanceof TlsServer;
    const event = isSecure ? 'secureConnection' : 'connection';
    const [accept] = server.listeners(event) as ((socket: Socket) => void)[];
    if (accept === undefined) throw new TypeError('the server takes no connections');
    this.#accept = accept.bind(server);
    if (isSecure) server.prependListener('connection', (socket: Socket) => this.#shake(socket));
    server.off(event, accept).prependListener(event, (socket: Socket) => this.#take(socket, isSecure));
    if (limit.beyond === 'refuse') server.maxConnections = limit.max + TOLD_CONNECTIONS;
    const { headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs, sendTimeoutMs, bodyTimeoutMs } = limits;
    const shortestMs = Math.min(headersTimeoutMs, requestTimeoutMs, keepAliveTimeoutMs);
    this.#newForMs = Math.min(MAX_CHECK_MS, Math.ceil(shortestMs / 4));
    const checkMs = Math.min(this.#newForMs, Math.ceil(Math.min(sendTimeoutMs, bodyTimeoutMs) / 4));
    const timer = setInterval(() => this.#check(), checkMs).unref();
    server.once('close', () => clearInterval(timer));
  }

  of(socket: Socket): ClientConnection | undefined {
    return this.#open.get(socket);
  }

  /** Makes responses that have not begun the last of their connections, which are about to close. */
  endKeepAlive(): void {
    for (const { turn } of this.#open.values())
      if (turn?.hasBegun === false && !turn.isTunnel) turn.makeLast();
  }

  /**
   * Closes connections on which nothing is served. One that has its last response is closed once the client has read it. On a new one,
   * the first request may be on its way.
   */
  closeIdle(): void {
    for (const { socket } of this.#handshakes.values()) socket.destroy();
    const newFromMs = performance.now() - this.#newForMs;
    for (const { reader, socket, isClosing, openedMs } of this.#open.values()) {
      const isUnused = reader?.isUnused === true && openedMs <= newFromMs;
      if ((reader?.isIdle === true || isUnused) && !isClosing) socket.destroy();
    }
  }

  closeAll(): void {
    for (const { socket } of this.#handshakes.values()) socket.destroy();
    for (const { socket } of this.#open.values()) socket.destroy();
  }

  /** Resolves when every connection has closed and its request has ended, which is a little later than Node's server has closed. */
  async closed(): Promise<void> {
    const sockets = [...this.#open.keys()];
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))));
  }

  #shake(socket: Socket): void {
    if (this.#letGo(socket) || !this.#makeRoom(socket)) return;
    const peer = peerOf(socket);
    this.#handshakes.set(peer, { socket, sinceMs: performance.now() });
    socket.once('close', () => this.#handshakes.delete(peer));
  }

  #take(socket: Socket, isSecure: boolean): void {
    if (this.#letGo(socket)) return;
    let openedMs = performance.now();
    if (isSecure) {
      const peer = peerOf(socket);
      openedMs = this.#handshakes.get(peer)?.sinceMs ?? openedMs;
      this.#handshakes.delete(peer);
      // From now on a client may close its side before it has its response, as without TLS. One that leaves earlier is let go at once.
      socket.allowHalfOpen = true;
    } else if (!this.#makeRoom(socket)) return;
    const isSurplus = this.#limit.beyond === 'refuse' && this.#open.size >= this.#limit.max;
    const connection = new ClientConnection(socket, this.#limits, isSurplus, openedMs);
    this.#open.set(socket, connection);
    socket.once('close', () => this.#open.delete(socket));
    if (this.onExchange === undefined) this.#giveToNode(connection);
    else this.#readAtEdge(connection, this.onExchange);
  }

  #readAtEdge(connection: ClientConnection, serve: (exchange: Exchange) => void): void {
    const seconds = Math.floor(this.#limits.keepAliveTimeoutMs / 1000);
    connection.reader = new EdgeReader(connection, {
      limits: this.#limits,
      keepAliveLines: `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n`,
      newForMs: this.#newForMs,
      serve,
      isDraining: () => !this.server.listening,
      handOver: () => this.#giveToNode(connection),
    });
    connection.followClientEnd();
  }

  /** From now on, Node's server reads the connection. */
  #giveToNode(connection: ClientConnection): void {
    this.#accept(connection.socket);
    connection.followClientEnd();
    connection.reader = this.#feeds.feed(connection, this.#limits);
  }

  /**
   * Closes a connection that its client reset before it was accepted: the client's address is no longer known.
   *
   * @returns whether it did
   */
  #letGo(socket: Socket): boolean {
    // Peers of a Unix socket have no address.
    const isGone = socket.remoteAddress === undefined && typeof this.server.address() !== 'string';
    if (isGone) socket.destroy();
    return isGone;
  }

  /** @returns false if the new connection had to be closed */
  #makeRoom(socket: Socket): boolean {
    const { max, beyond } = this.#limit;
    if (beyond === 'displace' && this.#open.size + this.#handshakes.size >= max) {
      (this.#oldestWaiting() ?? socket).destroy();
    }
    return !socket.destroyed;
  }

  #oldestWaiting(): Socket | undefined {
    const shaking = [...this.#handshakes.values()].find(({ socket }) => !socket.destroyed);
    for (const { socket, isAnswering, openedMs } of this.#open.values()) {
      if (isAnswering || socket.destroyed) continue;
      return shaking !== undefined && shaking.sinceMs < openedMs ? shaking.socket : socket;
    }
    return shaking?.socket;
  }

  #check(): void {
    const nowMs = performance.now();
    for (const connection of this.#open.values()) connection.check(nowMs);
  }
}

/** The same for the socket of TLS and the one that carries it. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
