import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { ABORTED, CLOSED, MALFORMED, UpstreamError } from '../message/errors.ts';
import { GrammarError } from '../message/grammar.ts';
import type { Connector, ReadTarget } from './connector.ts';
import type { Pool, PooledConnection } from './pool.ts';
import type { Repeat, Transfer, UpstreamRequest } from './request.ts';
import { idleLimitOf, timeoutOf } from './request.ts';
import { ResponseReader } from './response-reader.ts';
import { ReadBuffer, SocketWrites } from './socket-use.ts';
import { Upload, type UploadOwner } from './upload.ts';

/** A request that a connection carries, until its response has ended. */
interface Carried {
  readonly request: UpstreamRequest;
  readonly reader: ResponseReader;
  /** Of a body that is a stream. */
  upload: Upload | undefined;
  /** Whether a byte of the response has come. */
  hasResponse: boolean;
}

/**
 * How long a connection may be given further requests: a new one looks up the name again, so that a changed address and new instances
 * behind a balancer get requests. Up to a tenth less, so that connections which were opened together do not end together.
 */
const AGE_LIMIT_MS = 300_000;

/** One connection to an upstream. It carries one request at a time, and a further one only if nothing is in doubt. */
export class Connection implements PooledConnection, ReadTarget, Transfer, UploadOwner {
  readonly #pool: Pool;
  readonly #socket: Socket;
  readonly #writes: SocketWrites;
  readonly #buffer = new ReadBuffer();
  #carried: Carried | undefined;
  isConnected = false;
  #isPaused = false;
  /** Whether it has carried a whole response. */
  #hasServed = false;
  /** When the present wait began. */
  #sinceMs = performance.now();
  #idleLimitMs: number;
  readonly #agedAtMs = performance.now() + AGE_LIMIT_MS * (1 - Math.random() / 10);

  constructor(pool: Pool, connector: Connector) {
    this.#pool = pool;
    this.#idleLimitMs = pool.limits.keepAliveTimeoutMs;
    this.#socket = connector.open(this);
    this.#writes = new SocketWrites(this.#socket, (error) => this.#onWriteError(error));
    this.#socket
      .once(connector.readyEvent, () => this.#onConnected())
      .on('drain', () => this.#carried?.upload?.onDrain())
      .on('error', (error) => this.#fail(error, true))
      .on('end', () => this.#onUpstreamEnd())
      .on('close', () => {
        this.#fail(closedByUpstream(), true);
        pool.onClosed(this);
      });
  }

  /** Whether it can carry another request. Certain only once this turn of the event loop has read the sockets. */
  isReusable(nowMs: number): boolean {
    if (this.#carried !== undefined || !this.#socket.writable) return false;
    return nowMs - this.#sinceMs < this.#idleLimitMs && nowMs < this.#agedAtMs;
  }

  send(request: UpstreamRequest, head: string, nowMs: number): void {
    const reader = new ResponseReader(request.method, request.handler);
    const carried: Carried = { request, reader, upload: undefined, hasResponse: false };
    this.#carried = carried;
    this.#sinceMs = nowMs;
    this.#writes.begin();
    request.handler.onConnection(this);
    // The handler may have aborted it.
    if (this.#carried !== carried) return;
    const { body, bodyLength } = request;
    const socket = this.#socket;
    if (body === null) socket.write(head, 'latin1');
    else if (body instanceof Readable) {
      carried.upload = new Upload(socket, head, body, bodyLength, this);
      // Reading the body makes the client send it: not before somebody is there to take it.
      if (this.isConnected) carried.upload.start();
    } else {
      socket.cork();
      socket.write(head, 'latin1');
      if (Buffer.isBuffer(body)) socket.write(body);
      else for (const piece of body) socket.write(piece);
      socket.uncork();
    }
  }

  pause(): void {
    if (this.#carried === undefined) return;
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
    if (this.#carried === undefined) {
      if (waitedMs >= this.#idleLimitMs) this.close();
      return;
    }
    const error = timeoutOf(this.#wait, waitedMs, this.#pool.limits);
    if (error !== undefined) this.#fail(error, false);
  }

  nextBuffer(): Buffer {
    return this.#buffer.next();
  }

  onRead(byteCount: number, bytes: Buffer): boolean {
    this.#buffer.noteRead(byteCount);
    const carried = this.#carried;
    if (carried === undefined || this.#isUnsent) {
      // Nobody asked for it: it must not become the next response.
      this.#fail(closedByUpstream(), true);
      return false;
    }
    carried.hasResponse = true;
    this.#sinceMs = performance.now();
    const { request, reader } = carried;
    try {
      const end = reader.read(bytes, 0, byteCount);
      if (request.handler.onFlush() === 'kept') this.#buffer.keep();
      // The handler may have aborted it.
      if (reader.isDone && this.#carried === carried) this.#onResponseEnd(end < byteCount);
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

  get #wait() {
    if (!this.isConnected) return 'connection';
    if (this.#isPaused || this.#carried?.upload?.isWaitingForClient) return 'client';
    return this.#carried?.reader.head === undefined ? 'head' : 'body';
  }

  #onConnected(): void {
    this.isConnected = true;
    this.#sinceMs = performance.now();
    this.#carried?.upload?.start();
  }

  /** The upstream may have answered before it closed, so the connection is read until its end. */
  #onWriteError(error: Error): void {
    const carried = this.#carried;
    if (carried === undefined || this.#isUnsent) this.#fail(error, true);
    else carried.upload?.stop();
  }

  /** The upstream closed its side, which may be how it ends a body. */
  #onUpstreamEnd(): void {
    const carried = this.#carried;
    const { error } = this.#writes;
    try {
      if (wasReset(error) || carried?.reader.readClose() !== true) {
        this.#fail(error ?? closedByUpstream(), true);
        return;
      }
      carried.request.handler.onFlush();
      if (this.#carried === carried) this.#onResponseEnd(false);
    } catch (handlerError) {
      this.#fail(handlerError, false);
    }
  }

  /** Closes the connection after a response, or offers it for another request. */
  #onResponseEnd(hasSurplus: boolean): void {
    const carried = this.#release();
    if (carried === undefined) return;
    const { head } = carried.reader;
    if (head?.keepAliveMs !== undefined) this.#idleLimitMs = idleLimitOf(head.keepAliveMs, this.#pool.limits);
    const isPersistent = head?.isPersistent === true && this.#idleLimitMs > 0 && this.#socket.writable;
    const isSent = carried.upload?.isDone !== false && this.#writes.error === undefined;
    if (hasSurplus || !isSent || !isPersistent) {
      this.close();
      return;
    }
    this.#hasServed = true;
    // The last chunk may have asked for a pause.
    this.resume();
    if (this.#socket.writableLength === 0) this.#pool.onIdle(this);
    // TLS reports the end of a write a little later than the response arrives.
    else setImmediate(this.#offerOnceSent);
  }

  /** A response that overtook its request leaves the connection in doubt. */
  readonly #offerOnceSent = (): void => {
    if (this.#socket.destroyed) return;
    if (this.#socket.writableLength === 0) this.#pool.onIdle(this);
    else this.close();
  };

  /** Whether a connection that was used before has sent nothing of its request, so what happens cannot be an answer to it. */
  get #isUnsent(): boolean {
    return this.#hasServed && !this.#writes.hasSent;
  }

  #fail(error: unknown, isSocketError: boolean): void {
    const isUnsent = isSocketError && this.#isUnsent;
    this.close();
    const carried = this.#release(isUnsent);
    if (carried === undefined) return;
    const isStale = isSocketError && this.#hasServed && !carried.hasResponse;
    const repeat: Repeat = isUnsent ? 'any' : isStale ? 'idempotent' : 'none';
    carried.request.handler.onError(error instanceof Error ? error : new Error(String(error)), repeat);
  }

  /**
   * Detaches and returns the current request; undefined if there is none. Later socket or upload events then cannot end it twice.
   * Call it before the upload is cancelled and before the handler is called.
   */
  #release(isUnsent = false): Carried | undefined {
    const carried = this.#carried;
    if (carried === undefined) return undefined;
    this.#carried = undefined;
    this.#pool.onSettled();
    carried.reader.abandon();
    if (isUnsent) carried.upload?.giveBack();
    else if (carried.upload?.isDone === false) carried.upload.cancel();
    return carried;
  }
}

/**
 * Whether a write failed because of a reset. Reading then gives an end, as if the upstream had closed properly. A write behind a proper end
 * fails with EPIPE.
 */
function wasReset(error: NodeJS.ErrnoException | undefined): boolean {
  return error !== undefined && error.code !== 'EPIPE';
}

function closedByUpstream(): UpstreamError {
  return new UpstreamError(CLOSED, 'the upstream closed the connection');
}

function malformedOr(error: unknown): unknown {
  return error instanceof GrammarError ? new UpstreamError(MALFORMED, error.message) : error;
}
