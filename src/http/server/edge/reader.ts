import type { Socket } from 'node:net';
import type { Refusal } from '../../../domain/problems.ts';
import type { Exchange } from '../../exchange.ts';
import { countBuffer } from '../../message/buffer-garbage.ts';
import { emptyLengthOf, MAX_EMPTY_BYTES } from '../../message/grammar.ts';
import type { ClientConnection, Reader } from '../client-connection.ts';
import type { ListenSettings } from '../server.ts';
import { breakTurn, NOT_HTTP, TOO_SLOW } from '../unreadable.ts';
import { ArrivingBody } from './arriving-body.ts';
import { EdgeExchange } from './edge-exchange.ts';
import { type PlainHead, readPlainHead } from './plain-head.ts';

/** Longer bodies are streamed. */
const WHOLE_BODY_BYTES = 16_384;

/** A short body usually follows its head at once; a slower one is streamed. */
const BODY_WAIT_MS = 50;

const NO_BODY = Buffer.alloc(0);

/** A plain request with a part of its short body missing. */
interface Unfinished {
  readonly head: PlainHead;
  readonly pieces: Buffer[];
  length: number;
  readonly timer: NodeJS.Timeout;
}

/** What the readers of a port's connections share, and whom they give a connection to. */
interface EdgeRole {
  readonly limits: ListenSettings;
  /** The field lines that promise to keep a connection. */
  readonly keepAliveLines: string;
  /** How long a new connection may be silent before Node's server times it. */
  readonly newForMs: number;
  serve(exchange: Exchange): void;
  /** Whether connections are to end with their next response. */
  isDraining(): boolean;
  /** Gives the connection to Node's server; what has not been read is in the socket. */
  handOver(): void;
}

/**
 * Reads a connection on which nothing but plain requests has arrived: their heads were whole, and every parser reads them in the same
 * way. They are served one at a time, at a lower cost than behind Node's server. Anything else is handed to Node's server, together with
 * its bytes: a head that is not plain or not whole, a body that is longer than allowed.
 */
export class EdgeReader implements Reader {
  readonly #connection: ClientConnection;
  readonly #socket: Socket;
  readonly #role: EdgeRole;
  #exchange: EdgeExchange | undefined;
  #unfinished: Unfinished | undefined;
  /** When it was opened, or first seen to be idle after its last response; undefined between that response and the next check. */
  #waitsSinceMs: number | undefined = performance.now();
  #isNew = true;
  /** Since the last request. */
  #emptyBytes = 0;
  #hasReadAhead = false;
  #hasClientEnded = false;

  constructor(connection: ClientConnection, role: EdgeRole) {
    this.#connection = connection;
    this.#role = role;
    this.#socket = connection.socket;
    this.#socket.on('data', this.#onData).on('end', this.#onEnd).on('drain', this.#onDrain);
    this.#socket.on('close', this.#onClose);
  }

  get isIdle(): boolean {
    return !this.#isNew && this.#exchange === undefined && this.#unfinished === undefined;
  }

  get isUnused(): boolean {
    return this.#isNew && this.#unfinished === undefined;
  }

  /** Closes a connection that was idle for too long. Node's server times a new one on which nothing arrives. */
  check(nowMs: number): void {
    this.#checkArriving(nowMs);
    this.#waitsSinceMs ??= nowMs;
    const waitedMs = nowMs - this.#waitsSinceMs;
    if (this.isIdle) {
      if (waitedMs >= this.#role.limits.keepAliveTimeoutMs) this.#socket.destroy();
    } else if (this.isUnused && waitedMs >= this.#role.newForMs) this.#handOver();
  }

  #checkArriving(nowMs: number): void {
    const exchange = this.#exchange;
    if (exchange === undefined || exchange.isComplete || this.#isLastAnswered) return;
    const { sinceMs = nowMs } = exchange;
    if (nowMs - sinceMs >= this.#role.limits.requestTimeoutMs)
      breakTurn(this.#connection, exchange, TOO_SLOW);
  }

  readonly #onData = (bytes: Buffer): void => {
    const exchange = this.#exchange;
    // A response may begin before the body has ended, and the connection close behind it: both flow on until then.
    if (exchange?.isComplete === false && !this.#isLastAnswered) this.#readRest(exchange, bytes);
    // What follows the last response is dropped.
    else if (this.#connection.isClosing) countBuffer(bytes);
    else if (exchange !== undefined) this.#holdBack(bytes);
    else if (this.#unfinished !== undefined) this.#readBody(this.#unfinished, bytes);
    else this.#readHead(bytes);
  };

  get #isLastAnswered(): boolean {
    return this.#exchange?.isAnswered === true && this.#connection.isClosing;
  }

  #readHead(bytes: Buffer): void {
    const { limits } = this.#role;
    const head = readPlainHead(bytes, limits);
    if (head === undefined || head.bodyLength > limits.maxBodyBytes) {
      if (!this.#dropEmpty(bytes)) this.#handOver(bytes);
      return;
    }
    this.#hasReadAhead = false;
    if (head.length + head.bodyLength <= bytes.length) this.#serveFirst(head, bytes);
    else if (head.bodyLength > WHOLE_BODY_BYTES) this.#serveArriving(head, bytes);
    else {
      const timer = setTimeout(() => this.#serveArriving(head, this.#arrived()), BODY_WAIT_MS);
      this.#unfinished = { head, pieces: [bytes], length: bytes.length, timer };
    }
  }

  /** Drops empty lines behind a response: the connection stays idle. Node's server would time them as the beginning of a head. */
  #dropEmpty(bytes: Buffer): boolean {
    if (this.#isNew || emptyLengthOf(bytes) < bytes.length) return false;
    if (this.#hasReadAhead) this.#connection.readAhead();
    this.#hasReadAhead = false;
    countBuffer(bytes);
    this.#emptyBytes += bytes.length;
    if (this.#emptyBytes > MAX_EMPTY_BYTES) this.#socket.destroy();
    return true;
  }

  #readBody(unfinished: Unfinished, bytes: Buffer): void {
    unfinished.pieces.push(bytes);
    unfinished.length += bytes.length;
    const { head, length } = unfinished;
    if (head.length + head.bodyLength <= length) this.#serveFirst(head, this.#arrived());
  }

  /** The bytes of the request that has not arrived whole. */
  #arrived(): Buffer {
    return Buffer.concat(this.#unfinished?.pieces ?? []);
  }

  /** Serves the first request of these bytes; what follows it waits for its turn. */
  #serveFirst(head: PlainHead, bytes: Buffer): void {
    const end = head.length + head.bodyLength;
    if (end < bytes.length) this.#holdBack(bytes.subarray(end));
    this.#serve(head, head.bodyLength === 0 ? NO_BODY : bytes.subarray(head.length, end));
  }

  /**
   * Serves a request whose body is streamed.
   *
   * @param brokenBy why its rest will not arrive
   */
  #serveArriving(head: PlainHead, bytes: Buffer, brokenBy?: Refusal): void {
    const body = new ArrivingBody(this.#socket, head.bodyLength);
    body.receive(bytes.subarray(head.length));
    this.#serve(head, body, brokenBy);
  }

  /** Serves a request whose body will not arrive whole, so that it is logged. */
  #serveBroken(): void {
    if (this.#unfinished !== undefined) this.#serveArriving(this.#unfinished.head, this.#arrived(), NOT_HTTP);
  }

  #readRest(exchange: EdgeExchange, bytes: Buffer): void {
    const behind = exchange.receive(bytes);
    if (!exchange.isComplete) return;
    if (behind.length > 0) {
      if (this.#connection.isClosing) countBuffer(behind);
      else this.#holdBack(behind);
    }
    if (exchange.isAnswered) this.#goOn();
  }

  /** Leaves bytes in the socket until the response in front of them has been sent. */
  #holdBack(bytes: Buffer): void {
    this.#hasReadAhead = true;
    this.#socket.pause();
    this.#socket.unshift(bytes);
  }

  #serve(head: PlainHead, body: Buffer | ArrivingBody, brokenBy?: Refusal): void {
    this.#stopWaiting();
    this.#isNew = false;
    this.#emptyBytes = 0;
    const exchange = new EdgeExchange(this.#connection, head, body, this);
    this.#exchange = exchange;
    this.#connection.turn = exchange;
    if (this.#role.isDraining()) exchange.endKeepAlive();
    if (brokenBy !== undefined) exchange.breakOff(brokenBy);
    this.#role.serve(exchange);
  }

  #stopWaiting(): void {
    clearTimeout(this.#unfinished?.timer);
    this.#unfinished = undefined;
  }

  /** The system has taken the whole response. */
  onAnswered(isLast: boolean): void {
    this.#exchange?.close();
    if (this.#connection.isClosing) this.#connection.linger();
    else if (isLast && (this.#hasReadAhead || this.#exchange?.isComplete === false))
      this.#connection.closeNow();
    else if (isLast || this.#hasClientEnded) this.#socket.destroySoon();
    // The rest of the body may be dropped, or on its way to the upstream.
    if (this.#exchange?.isComplete !== false) this.#goOn();
  }

  /** The exchange has ended: the next one may begin. */
  #goOn(): void {
    this.#waitsSinceMs = undefined;
    this.#exchange = undefined;
    this.#connection.turn = undefined;
    // In the next turn of the event loop, so that other connections get theirs.
    if (this.#hasReadAhead && !this.#connection.isClosing) setImmediate(() => this.#socket.resume());
  }

  get keepAliveLines(): string {
    return this.#role.keepAliveLines;
  }

  readonly #onEnd = (): void => {
    const exchange = this.#exchange;
    if (exchange === undefined && this.#unfinished === undefined) this.#socket.end();
    else this.#hasClientEnded = true;
    this.#serveBroken();
    if (exchange?.isComplete === false) breakTurn(this.#connection, exchange, NOT_HTTP);
  };

  readonly #onDrain = () => this.#exchange?.taker?.onDrain();

  readonly #onClose = (): void => {
    this.#serveBroken();
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#connection.turn = undefined;
    if (exchange?.isAnswered === false) exchange.close();
  };

  /** Gives the connection to Node's server, with what arrived last. */
  #handOver(bytes?: Buffer): void {
    const socket = this.#socket;
    this.#stopWaiting();
    socket.pause();
    socket.off('data', this.#onData).off('end', this.#onEnd).off('drain', this.#onDrain);
    socket.off('close', this.#onClose);
    if (bytes !== undefined) socket.unshift(bytes);
    if (this.#hasReadAhead) this.#connection.readAhead();
    this.#role.handOver();
    socket.resume();
  }
}
