import type { Socket } from 'node:net';
import { ABORTED, CLOSED, MALFORMED, UpstreamError } from '../message/errors.ts';
import { GrammarError } from '../message/grammar.ts';
import type { ResponseHead } from '../message/head/response-head.ts';
import type { Connector } from './connector.ts';
import type { Pool, PooledConnection } from './pool.ts';
import type { Transfer, UpstreamRequest } from './request.ts';
import { timeoutOf } from './request.ts';
import { ResponseReader } from './response-reader.ts';

/**
 * A connection for one request to switch protocols. Once that is granted, the socket belongs to the handler; it keeps its place among
 * the connections until it closes.
 */
export class UpgradeConnection implements PooledConnection, Transfer {
  readonly #pool: Pool;
  readonly #socket: Socket;
  #request: UpstreamRequest | undefined;
  #reader: ResponseReader | undefined;
  isConnected = false;
  #sinceMs = performance.now();

  constructor(pool: Pool, connector: Connector) {
    this.#pool = pool;
    this.#socket = connector.open();
    this.#socket
      .once(connector.readyEvent, () => {
        this.isConnected = true;
        this.#sinceMs = performance.now();
      })
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose);
  }

  send(request: UpstreamRequest, head: string): void {
    this.#request = request;
    this.#reader = new ResponseReader(request.method, request.handler, { takesUpgrade: true });
    request.handler.onConnection(this);
    // The handler may have aborted it.
    if (this.#request !== undefined) this.#socket.write(head, 'latin1');
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#sinceMs = performance.now();
    this.#socket.resume();
  }

  abort(): void {
    this.#fail(new UpstreamError(ABORTED, 'the request was aborted'));
  }

  sweep(nowMs: number): void {
    if (this.#request === undefined) return;
    const isResponding = this.#reader?.head !== undefined;
    if (isResponding && this.#socket.isPaused()) return;
    const wait = isResponding ? 'body' : this.isConnected ? 'head' : 'connection';
    const error = timeoutOf(wait, nowMs - this.#sinceMs, this.#pool.limits);
    if (error !== undefined) this.#fail(error);
  }

  readonly #onData = (bytes: Buffer): void => {
    const request = this.#request;
    const reader = this.#reader;
    if (request === undefined || reader === undefined) return;
    this.#sinceMs = performance.now();
    try {
      const end = reader.read(bytes, 0, bytes.length);
      const { head } = reader;
      if (head?.status === 101) this.#handOver(request, head, bytes.subarray(end));
      else this.#flush(request, reader);
    } catch (error) {
      this.#fail(error instanceof GrammarError ? new UpstreamError(MALFORMED, error.message) : error);
    }
  };

  readonly #onEnd = (): void => {
    const request = this.#request;
    const reader = this.#reader;
    if (request === undefined || reader === undefined) return;
    try {
      if (!reader.readClose()) throw new UpstreamError(CLOSED, 'the upstream closed the connection');
      this.#flush(request, reader);
    } catch (error) {
      this.#fail(error);
    }
  };

  readonly #onError = (error: Error): void => this.#fail(error);

  readonly #onClose = (): void => {
    this.#fail(new UpstreamError(CLOSED, 'the upstream closed the connection'));
    this.#pool.onClosed(this);
  };

  #flush(request: UpstreamRequest, reader: ResponseReader): void {
    request.handler.onFlush();
    if (!reader.isDone || this.#request !== request) return;
    this.#settle();
    this.#socket.destroy();
  }

  #handOver(request: UpstreamRequest, head: ResponseHead, rest: Buffer): void {
    // RFC 9110 section 7.8: nobody would understand another protocol.
    if (head.fields.get('upgrade')?.toLowerCase() !== request.upgrade?.protocol) {
      throw new GrammarError('a switch to a protocol that was not requested');
    }
    this.#settle();
    const socket = this.#socket;
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError);
    if (rest.length > 0) socket.unshift(rest);
    request.upgrade?.onUpgrade(head, socket);
  }

  #fail(error: unknown): void {
    this.#socket.destroy();
    const request = this.#request;
    if (request === undefined) return;
    this.#reader?.abandon();
    this.#settle();
    request.handler.onError(error instanceof Error ? error : new Error(String(error)), 'none');
  }

  #settle(): void {
    this.#request = undefined;
    this.#reader = undefined;
    this.#pool.onSettled();
  }
}
