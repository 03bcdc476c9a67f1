import type { Socket } from 'node:net';
import { arrivedAhead, markBroken, NOT_HTTP } from '../http/broken.ts';
import { countBuffer } from '../http/buffer-garbage.ts';
import { isClosing } from '../http/lingering-close.ts';
import type { Edge } from './edge.ts';
import { type PlainHead, readPlainHead } from './plain-head.ts';
import { EdgeRequest } from './request.ts';
import { EdgeResponse, edgeResponses } from './response.ts';

/** Longer bodies are streamed, which is for Node's server. */
const MAX_BODY_BYTES = 16_384;

/** A body usually follows its head at once; a slower one is for Node's server, with its time-outs. */
const BODY_WAIT_MS = 50;

/** A plain request of which a part of the body is missing. */
interface Unfinished {
  readonly head: PlainHead;
  readonly bytes: Buffer;
  readonly timer: NodeJS.Timeout;
}

/**
 * A connection on which nothing but plain requests has arrived. They are served one at a time. At the first other bytes it goes to
 * Node's server, with these bytes: a head that is not plain or not whole, a long or slow body, two requests in one read.
 */
export class EdgeConnection {
  readonly socket: Socket;
  readonly #edge: Edge;
  #response: EdgeResponse | undefined;
  #unfinished: Unfinished | undefined;
  /** When it was opened, or when its last response was sent. */
  #waitsSinceMs = performance.now();
  #isNew = true;
  #hasReadAhead = false;
  #hasClientEnded = false;

  constructor(edge: Edge, socket: Socket) {
    this.#edge = edge;
    this.socket = socket;
    socket.on('data', this.#onData).on('end', this.#onEnd).on('drain', this.#onDrain);
    socket.on('error', this.#onError).on('close', this.#onClose);
  }

  /** Whether it waits for its next request. A new connection does not: its first request may be on its way. */
  get isIdle(): boolean {
    return !this.#isNew && this.#response === undefined && this.#unfinished === undefined;
  }

  /** Closes a connection that was idle for too long. Node's server times a new one on which nothing arrives. */
  checkTime(nowMs: number, newForMs: number): void {
    const waitedMs = nowMs - this.#waitsSinceMs;
    if (this.isIdle) {
      if (waitedMs >= this.#edge.limits.keepAliveTimeoutMs) this.socket.destroy();
    } else if (this.#isNew && this.#unfinished === undefined && waitedMs >= newForMs) this.#handOver();
  }

  readonly #onData = (bytes: Buffer): void => {
    // What follows the last response is dropped.
    if (isClosing(this.socket)) countBuffer(bytes);
    else if (this.#response !== undefined) {
      // Sent ahead of its turn: it is read again once the response has been sent.
      this.#hasReadAhead = true;
      this.socket.pause();
      this.socket.unshift(bytes);
    } else if (this.#unfinished !== undefined) {
      this.#read(this.#unfinished.head, Buffer.concat([this.#unfinished.bytes, bytes]));
    } else this.#read(readPlainHead(bytes, this.#edge.limits.maxHeaderBytes), bytes);
  };

  #read(head: PlainHead | undefined, bytes: Buffer): void {
    const longest = Math.min(MAX_BODY_BYTES, this.#edge.limits.maxBodyBytes);
    const missing = head === undefined ? -1 : head.length + head.bodyLength - bytes.length;
    if (head === undefined || head.bodyLength > longest || missing < 0) this.#handOver(bytes);
    else if (missing === 0) this.#serve(head, bytes.subarray(head.length));
    else {
      const timer =
        this.#unfinished?.timer ?? setTimeout(() => this.#handOver(this.#unfinished?.bytes), BODY_WAIT_MS);
      this.#unfinished = { head, bytes, timer };
    }
  }

  /** @param body undefined if the client ended before it was complete */
  #serve(head: PlainHead, body: Buffer | undefined): void {
    this.#stopWaiting();
    this.#isNew = false;
    this.#hasReadAhead = false;
    const request = new EdgeRequest(this.socket, head, body);
    if (body === undefined) markBroken(request, NOT_HTTP);
    const response = new EdgeResponse(request, this.#edge.limits.keepAliveTimeoutMs);
    response.once('finish', this.#onFinish);
    this.#response = response;
    edgeResponses.set(this.socket, response);
    this.#edge.serve(request, response);
  }

  #stopWaiting(): void {
    clearTimeout(this.#unfinished?.timer);
    this.#unfinished = undefined;
  }

  /** The system has taken the whole response. */
  readonly #onFinish = (): void => {
    const isLast = this.#hasClientEnded || this.#response?.shouldKeepAlive === false;
    this.#waitsSinceMs = performance.now();
    this.#closeResponse();
    if (isLast) this.socket.destroySoon();
    else if (this.#hasReadAhead) this.socket.resume();
  };

  #closeResponse(): void {
    const response = this.#response;
    this.#response = undefined;
    edgeResponses.delete(this.socket);
    response?.emit('close');
  }

  readonly #onEnd = (): void => {
    if (this.#response === undefined && this.#unfinished === undefined) this.socket.end();
    else this.#hasClientEnded = true;
    if (this.#unfinished !== undefined) this.#serve(this.#unfinished.head, undefined);
  };

  readonly #onDrain = () => this.#response?.emit('drain');

  /** The socket closes by itself. */
  readonly #onError = (): void => {};

  readonly #onClose = (): void => {
    this.#stopWaiting();
    this.#edge.open.delete(this);
    this.#closeResponse();
  };

  /** Gives the connection to Node's server, with what arrived last. */
  #handOver(bytes?: Buffer): void {
    const socket = this.socket;
    this.#stopWaiting();
    socket.pause();
    socket.off('data', this.#onData).off('end', this.#onEnd).off('drain', this.#onDrain);
    socket.off('error', this.#onError).off('close', this.#onClose);
    if (bytes !== undefined) socket.unshift(bytes);
    if (this.#hasReadAhead) arrivedAhead(socket);
    this.#edge.handOver(this);
    socket.resume();
  }
}
