import type { Socket } from 'node:net';
import { GrammarError } from '../../http1/grammar.ts';
import type { Connector, ReadTarget } from './connector.ts';
import { ABORTED, CLOSED, MALFORMED, UpstreamError } from './errors.ts';
import { ReadBuffer } from './read-buffer.ts';
import type { Transfer, UpstreamRequest } from './request.ts';
import { ResponseReader } from './response-reader.ts';
import { type TimeLimits, timeoutOf, type Wait } from './time-limits.ts';
import { Upload, type UploadOwner } from './upload.ts';

/** A connection as its pool sees it. */
export interface PooledConnection {
  /** @param head the request's head as it is sent */
  send(request: UpstreamRequest, head: string): void;
  /** Ends a wait that has exceeded its limit. */
  sweep(nowMs: number): void;
  abort(): void;
}

export interface ConnectionOwner {
  readonly limits: TimeLimits;
  /** A request ended, well or not. */
  onSettled(): void;
  /** The connection can carry another request. */
  onIdle(connection: Connection): void;
  onClosed(connection: PooledConnection): void;
}

/** An upstream counts its own limit from an earlier moment than this side does. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

/** One connection to an upstream. It carries one request at a time, and a further one only if nothing is in doubt. */
export class Connection implements PooledConnection, ReadTarget, Transfer, UploadOwner {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #buffer = new ReadBuffer();
  #request: UpstreamRequest | undefined;
  #reader: ResponseReader | undefined;
  #upload: Upload | undefined;
  #isConnected = false;
  #isPaused = false;
  /** Whether it has carried a whole response. */
  #hasServed = false;
  /** Whether a byte of the present response has come. */
  #hasResponse = false;
  /** When the present wait began. */
  #sinceMs = performance.now();
  #idleLimitMs: number;

  constructor(owner: ConnectionOwner, connector: Connector) {
    this.#owner = owner;
    this.#idleLimitMs = owner.limits.keepAliveTimeoutMs;
    this.#socket = connector.open(this);
    this.#socket
      .once(connector.readyEvent, () => this.#onConnected())
      .on('drain', () => this.#upload?.onDrain())
      .on('error', (error) => this.#fail(error, true))
      .on('end', () => this.#onUpstreamEnd())
      .on('close', () => {
        this.#fail(closedByUpstream(), true);
        owner.onClosed(this);
      });
  }

  /** Whether it can carry another request. Certain only once this turn of the event loop has read the sockets. */
  isReusable(nowMs: number): boolean {
    return this.#request === undefined && this.#socket.writable && nowMs - this.#sinceMs < this.#idleLimitMs;
  }

  send(request: UpstreamRequest, head: string): void {
    this.#request = request;
    this.#reader = new ResponseReader(request.method, request.handler);
    this.#hasResponse = false;
    this.#sinceMs = performance.now();
    request.handler.onConnection(this);
    // The handler may have aborted it.
    if (this.#request === undefined) return;
    const { body, bodyLength } = request;
    const socket = this.#socket;
    if (body === null) socket.write(head, 'latin1');
    else if (Buffer.isBuffer(body)) {
      socket.cork();
      socket.write(head, 'latin1');
      socket.write(body);
      socket.uncork();
    } else {
      this.#upload = new Upload(socket, head, body, bodyLength, this);
      // Reading the body makes the client send it: not before somebody is there to take it.
      if (this.#isConnected) this.#upload.start();
    }
  }

  pause(): void {
    if (this.#request === undefined) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#sinceMs = performance.now();
    this.#socket.resume();
  }

  abort(): void {
    this.#fail(new UpstreamError(ABORTED, 'the request was aborted'), false);
  }

  close(): void {
    this.#socket.destroy();
  }

  sweep(nowMs: number): void {
    const waitedMs = nowMs - this.#sinceMs;
    if (this.#request === undefined) {
      if (waitedMs >= this.#idleLimitMs) this.close();
      return;
    }
    const error = timeoutOf(this.#wait, waitedMs, this.#owner.limits);
    if (error !== undefined) this.#fail(error, false);
  }

  nextBuffer(): Buffer {
    return this.#buffer.next();
  }

  onRead(byteCount: number, bytes: Buffer): boolean {
    this.#buffer.noteRead(byteCount);
    const request = this.#request;
    const reader = this.#reader;
    if (request === undefined || reader === undefined) {
      // Nobody asked for it: it must not become the next response.
      this.close();
      return false;
    }
    this.#hasResponse = true;
    this.#sinceMs = performance.now();
    try {
      const end = reader.read(bytes, 0, byteCount);
      if (!request.handler.onFlush()) this.#buffer.keep();
      if (reader.isDone && this.#request === request) this.#release(end < byteCount);
    } catch (error) {
      this.#fail(malformedOr(error), false);
    }
    return !this.#isPaused;
  }

  onUploadProgress(): void {
    this.#sinceMs = performance.now();
  }

  onUploadError(error: Error): void {
    this.#fail(error, false);
  }

  get #wait(): Wait {
    if (!this.#isConnected) return 'connection';
    if (this.#isPaused || this.#upload?.isWaitingForClient) return 'client';
    return this.#reader?.head === undefined ? 'head' : 'body';
  }

  #onConnected(): void {
    this.#isConnected = true;
    this.#sinceMs = performance.now();
    this.#upload?.start();
  }

  /** The upstream closed its side, which may be how it ends a body. */
  #onUpstreamEnd(): void {
    const request = this.#request;
    try {
      if (this.#reader?.readClose() !== true) throw closedByUpstream();
      request?.handler.onFlush();
      if (this.#request === request) this.#release(false);
    } catch (error) {
      this.#fail(error, error instanceof UpstreamError && error.code === CLOSED);
    }
  }

  /** The response is complete. */
  #release(hasSurplus: boolean): void {
    const head = this.#reader?.head;
    const upload = this.#upload;
    const isUploaded = upload === undefined || upload.isDone;
    if (head?.keepAliveMs !== undefined) {
      const { keepAliveTimeoutMs } = this.#owner.limits;
      this.#idleLimitMs = Math.min(keepAliveTimeoutMs, head.keepAliveMs - KEEP_ALIVE_MARGIN_MS);
    }
    this.#settle();
    if (!isUploaded) upload.cancel();
    const isPersistent = head?.isPersistent === true && this.#idleLimitMs > 0 && this.#socket.writable;
    if (hasSurplus || !isUploaded || !isPersistent) {
      this.close();
      return;
    }
    this.#hasServed = true;
    this.#sinceMs = performance.now();
    // The last chunk may have asked for a pause.
    this.resume();
    if (this.#socket.writableLength === 0) this.#owner.onIdle(this);
    // TLS reports the end of a write a little later than the response arrives.
    else setImmediate(this.#offerOnceSent);
  }

  /** A response that overtook its request leaves the connection in doubt. */
  readonly #offerOnceSent = (): void => {
    if (this.#socket.destroyed) return;
    if (this.#socket.writableLength === 0) this.#owner.onIdle(this);
    else this.close();
  };

  #fail(error: unknown, isSocketError: boolean): void {
    this.close();
    const request = this.#request;
    const upload = this.#upload;
    if (request === undefined) return;
    this.#reader?.abandon();
    this.#settle();
    if (upload?.isDone === false) upload.cancel();
    const isStale = isSocketError && this.#hasServed && !this.#hasResponse;
    request.handler.onError(error instanceof Error ? error : new Error(String(error)), isStale);
  }

  #settle(): void {
    this.#request = undefined;
    this.#reader = undefined;
    this.#upload = undefined;
    this.#owner.onSettled();
  }
}

function closedByUpstream(): UpstreamError {
  return new UpstreamError(CLOSED, 'the upstream closed the connection');
}

function malformedOr(error: unknown): unknown {
  return error instanceof GrammarError ? new UpstreamError(MALFORMED, error.message) : error;
}
