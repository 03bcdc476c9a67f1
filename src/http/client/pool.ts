import { ABORTED, UpstreamError } from '../message/errors.ts';
import { Connection } from './connection.ts';
import { Connector, type TlsOptions } from './connector.ts';
import { type TimeLimits, type UpstreamRequest, type WaitingPlace, writeRequestHead } from './request.ts';
import { UpgradeConnection } from './upgrade-connection.ts';

/** A connection as its pool sees it. */
export interface PooledConnection {
  /** @param head the request's head as it is sent */
  send(request: UpstreamRequest, head: string, nowMs: number): void;
  /** Ends a wait that has exceeded its limit. */
  sweep(nowMs: number): void;
  abort(): void;
}

/**
 * The requests that wait for a connection, in order of arrival. Not in a Map, whose old tables would keep past requests in memory
 * (docs/decisions/0011).
 */
class WaitingRequests {
  #places: WaitingPlace[] = [];
  /** Every place before this index is empty. */
  #first = 0;
  #emptied = 0;

  get size(): number {
    return this.#places.length - this.#emptied;
  }

  /** The place of the request that has waited for the longest time. */
  get first(): WaitingPlace | undefined {
    while (this.#places[this.#first]?.isEmpty) this.#first++;
    return this.#places[this.#first];
  }

  add(request: UpstreamRequest, head: string): void {
    request.place = { request, head, isEmpty: false };
    this.#places.push(request.place);
  }

  /** In constant time on average. Returns false for a request that does not wait. */
  remove(request: UpstreamRequest): boolean {
    const { place } = request;
    if (place === undefined) return false;
    request.place = undefined;
    place.isEmpty = true;
    this.#emptied++;
    if (this.#emptied > this.#places.length / 2) this.#close();
    return true;
  }

  /** Removes the empty places. */
  #close(): void {
    this.#places = this.#places.filter(({ isEmpty }) => !isEmpty);
    this.#first = 0;
    this.#emptied = 0;
  }
}

/** How often time limits are checked at least. */
const MAX_SWEEP_MS = 1_000;

/** Keep-alive connections to one upstream, and the requests that wait for one, first come, first served. */
export class Pool {
  readonly limits: TimeLimits;
  readonly #origin: URL;
  #connector: Connector;
  readonly #maxConnections: number;
  readonly #open = new Set<PooledConnection>();
  /** The most recently used one last. */
  readonly #idle: Connection[] = [];
  readonly #waiting = new WaitingRequests();
  readonly #timer: NodeJS.Timeout;
  #inFlight = 0;
  #isSendScheduled = false;
  #isDestroyed = false;

  /**
   * @param settings `connections`: at most so many at once
   * @throws Error when a certificate or a key cannot be used
   */
  constructor(origin: URL, settings: TimeLimits & { readonly connections: number }, tls?: TlsOptions) {
    this.#origin = origin;
    this.#connector = new Connector(origin, tls);
    this.#maxConnections = settings.connections;
    this.limits = settings;
    const { connectTimeoutMs, headersTimeoutMs, bodyTimeoutMs, keepAliveTimeoutMs } = settings;
    const limits = [connectTimeoutMs, headersTimeoutMs, bodyTimeoutMs, keepAliveTimeoutMs];
    const shortestMs = Math.min(...limits.filter((limitMs) => limitMs > 0));
    this.#timer = setInterval(() => this.sweep(), Math.min(MAX_SWEEP_MS, Math.ceil(shortestMs / 4)));
    this.#timer.unref();
  }

  /**
   * Uses this TLS for new connections. Open connections keep theirs.
   *
   * @throws Error when a certificate or a key cannot be used
   */
  useTls(tls: TlsOptions): void {
    this.#connector = new Connector(this.#origin, tls);
  }

  /** Requests that were dispatched and have not ended. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Sends the request on a connection once there is one. It waits until this turn of the event loop has read every
   * socket: a connection that the upstream has closed by then is not used.
   */
  dispatch(request: UpstreamRequest): void {
    let head: string;
    try {
      if (this.#isDestroyed) throw destroyed();
      head = writeRequestHead(request, this.#connector.host);
    } catch (error) {
      request.handler.onError(error as Error, 'none');
      return;
    }
    this.#inFlight++;
    this.#waiting.add(request, head);
    this.#scheduleSend();
  }

  /**
   * Takes back a request that waits for a connection; its handler is called no more.
   *
   * @returns false for a request that does not wait
   */
  cancel(request: UpstreamRequest): boolean {
    if (!this.#waiting.remove(request)) return false;
    this.#inFlight--;
    return true;
  }

  /** Closes every connection; requests under way fail. */
  destroy(): void {
    this.#isDestroyed = true;
    clearInterval(this.#timer);
    for (let next = this.#waiting.first; next !== undefined; next = this.#waiting.first) {
      const { request } = next;
      this.#waiting.remove(request);
      this.#inFlight--;
      request.handler.onError(destroyed(), 'none');
    }
    for (const connection of this.#open) connection.abort();
  }

  /** Ends what has taken too long. */
  sweep(nowMs = performance.now()): void {
    for (const connection of this.#open) connection.sweep(nowMs);
  }

  /** A request ended, well or not. */
  onSettled(): void {
    this.#inFlight--;
  }

  /** The connection can carry another request. */
  onIdle(connection: Connection): void {
    this.#idle.push(connection);
    if (this.#waiting.size > 0) this.#scheduleSend();
  }

  onClosed(connection: PooledConnection): void {
    this.#open.delete(connection);
    const index = connection instanceof Connection ? this.#idle.indexOf(connection) : -1;
    if (index !== -1) this.#idle.splice(index, 1);
    if (this.#waiting.size > 0) this.#scheduleSend();
  }

  #scheduleSend(): void {
    if (this.#isSendScheduled) return;
    this.#isSendScheduled = true;
    setImmediate(this.#send);
  }

  readonly #send = (): void => {
    this.#isSendScheduled = false;
    const nowMs = performance.now();
    for (let next = this.#waiting.first; next !== undefined; next = this.#waiting.first) {
      const { request, head } = next;
      const connection = this.#connectionFor(request, nowMs);
      if (connection === undefined) return;
      this.#waiting.remove(request);
      connection.send(request, head, nowMs);
    }
  };

  #connectionFor(
    { needsNewConnection, upgrade }: UpstreamRequest,
    nowMs: number,
  ): PooledConnection | undefined {
    if (needsNewConnection !== true && upgrade === undefined) {
      for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
        if (idle.isReusable(nowMs)) return idle;
        idle.close();
      }
    }
    if (this.#open.size < this.#maxConnections) {
      const connection = new (upgrade === undefined ? Connection : UpgradeConnection)(this, this.#connector);
      this.#open.add(connection);
      return connection;
    }
    // Makes room for a new one.
    this.#idle.shift()?.close();
    return undefined;
  }
}

function destroyed(): UpstreamError {
  return new UpstreamError(ABORTED, 'the pool is closed');
}
