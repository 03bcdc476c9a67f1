import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { Refusal } from '../../../domain/problems.ts';
import { Exchange, type WholeBody } from '../../exchange.ts';
import type { FieldLines } from '../../message/head/field-lines.ts';
import { FieldSection, isContinueExpected, type RequestHead } from '../../message/head/field-section.ts';
import { statusLine } from '../../message/head/response-head.ts';
import { endThisTurn } from '../this-turn.ts';
import { ClientRequest, fieldValuesOf } from './client-request.ts';
import type { NodeTurn } from './node-turn.ts';
import { RequestBody } from './request-body.ts';

/** After this silence, TCP asks whether the client of a tunnel is still there. */
const TCP_KEEP_ALIVE_MS = 60_000;

/** An exchange by the messages of Node's server. */
export class NodeExchange extends Exchange {
  readonly reader = 'node';
  readonly #turn: NodeTurn;
  #streamed: RequestBody | undefined;
  #isHeadSent = false;

  constructor(turn: NodeTurn) {
    super(headOf(turn), turn.connection.peer, undefined);
    this.#turn = turn;
    const { response } = turn;
    response.on('drain', () => this.taker?.onDrain());
    response.on('close', () => {
      // First, because it completes what is logged of the request.
      if (!response.writableFinished) this.taker?.onAbandoned();
      this.onClosed?.();
    });
  }

  get brokenBy(): Refusal | undefined {
    return this.#turn.request.brokenBy;
  }

  get isComplete(): boolean {
    return this.#turn.isComplete;
  }

  get isTunnel(): boolean {
    return this.#turn.isTunnel;
  }

  get isSurplus(): boolean {
    return this.#turn.connection.isSurplus;
  }

  get hasBegun(): boolean {
    return this.#turn.hasBegun;
  }

  get isEnded(): boolean {
    return this.#turn.isEnded;
  }

  get isAnswered(): boolean {
    return this.#turn.isAnswered;
  }

  get isClosed(): boolean {
    return this.#turn.response.destroyed;
  }

  get isAbandoned(): boolean {
    const { socket } = this.#turn.connection;
    return this.isClosed || socket.destroyed || socket.writableEnded;
  }

  get unsentBytes(): number {
    return this.#turn.response.writableLength;
  }

  get needsDrain(): boolean {
    const { response, connection } = this.#turn;
    // After an upgrade, nothing resets the response's own flag when the socket has been drained.
    return response.writableNeedDrain && connection.socket.writableNeedDrain;
  }

  readBody(maxBytes: number): Readable {
    this.#streamed ??= new RequestBody(this.#turn, isContinueExpected(this.head), maxBytes);
    return this.#streamed;
  }

  dropBody(): void {
    if (this.#streamed === undefined) this.#turn.drop();
    else this.#streamed.destroy();
  }

  get awaitedBytes(): number | undefined {
    return this.#turn.isAwaited ? this.#turn.connection.socket.bytesRead : undefined;
  }

  breakOff(refusal: Refusal): void {
    this.#turn.breakOff(refusal);
  }

  endKeepAlive(): void {
    this.#turn.response.shouldKeepAlive = false;
  }

  closeBehind(): void {
    this.#turn.closeBehind();
  }

  begin(status: number, lines: FieldLines): void {
    if (!lines.isSafe) throw unsafe();
    this.#turn.response.writeHead(status, lines.pairs.sort(dispositionFirst).flat());
    this.status = status;
  }

  write(chunk: Buffer): void {
    this.#isHeadSent = true;
    this.#turn.response.write(chunk);
  }

  /** Node's own `end(body)` adds an empty third piece and uses a slower vectored write. */
  endWith({ text, encoding }: WholeBody): void {
    const { response } = this.#turn;
    response.write(text, encoding);
    response.socket?.uncork();
    response.end();
  }

  endThisTurn(body: WholeBody): void {
    this.#turn.isGiven = true;
    endThisTurn(this, body);
  }

  flush(): void {
    const { response } = this.#turn;
    // Node's own `flushHeaders` would write octets above 127 as two.
    if (!this.#isHeadSent) response.write('', 'latin1');
    this.#isHeadSent = true;
    // Node would gather what is written in this turn of the event loop.
    if (response.socket?.writableCorked) response.socket.uncork();
  }

  end(trailers?: FieldLines): void {
    const { response } = this.#turn;
    if (trailers?.isSafe === true && trailers.text !== '') response.addTrailers(trailers.pairs);
    response.end();
  }

  /** A client of 1.0 does not know interim responses. */
  sendInterim(status: number, lines: FieldLines): void {
    const { response } = this.#turn;
    if (this.head.httpVersion !== '1.1' || response.headersSent || response.destroyed) return;
    response.socket?.write(`${statusLine(status)}${lines.text}\r\n`, 'latin1');
  }

  switchProtocols(lines: FieldLines, behind: Socket): Socket {
    const { connection } = this.#turn;
    const { socket } = connection;
    this.status = 101;
    this.#turn.hasSwitched = true;
    socket.write(`${statusLine(101)}${lines.text}\r\n`, 'latin1');
    socket.setTimeout(0);
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    connection.joinTo(behind);
    return socket;
  }

  /** A body for HTTP/1.0 may have neither a length nor chunks. Its client then takes an end for the end of the body, but not a reset. */
  abort(): void {
    const { httpVersion } = this.head;
    // TLS itself shows a client that the end was cut off, and Node cannot reset its sockets.
    if (httpVersion === '1.0' && this.hasBegun && !this.peer.isEncrypted) {
      this.#turn.connection.socket.resetAndDestroy();
    } else this.#turn.abort();
  }
}

/** Node reads a Content-Disposition behind a Content-Length as UTF-8: other octets would be an error, and UTF-8 become latin1. */
function dispositionFirst([one]: readonly [string, string], [other]: readonly [string, string]): number {
  return Number(isDisposition(other)) - Number(isDisposition(one));
}

function isDisposition(name: string): boolean {
  return name.toLowerCase() === 'content-disposition';
}

function unsafe(): TypeError {
  return new TypeError('a response field has an octet that is not allowed');
}

function headOf({ request, target }: NodeTurn): RequestHead {
  const headers = fieldValuesOf(request.headers);
  return {
    method: request.method ?? '',
    target,
    httpVersion: request.httpVersion,
    fields: FieldSection.of(request.rawHeaders),
    headers,
    field: (name) => headers[name],
  };
}

/** The turn of a request that a server of ours has read. */
export function turnOf(request: IncomingMessage): NodeTurn {
  if (!(request instanceof ClientRequest) || request.turn === undefined) {
    throw new TypeError('the request is not of this server');
  }
  return request.turn;
}
