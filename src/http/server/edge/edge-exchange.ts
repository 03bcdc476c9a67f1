import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { Refusal } from '../../../domain/problems.ts';
import { Exchange, type WholeBody } from '../../exchange.ts';
import type { FieldLines } from '../../message/head/field-lines.ts';
import { httpDate, statusLine } from '../../message/head/response-head.ts';
import { bodyTooLong, brokenBody } from '../../message/whole-body.ts';
import type { ClientConnection, Turn } from '../client-connection.ts';
import { endThisTurn } from '../this-turn.ts';
import { ArrivingBody } from './arriving-body.ts';
import type { PlainHead } from './plain-head.ts';

/** What an exchange needs of its reader. */
interface Answering {
  /** The field lines that promise to keep the connection. */
  readonly keepAliveLines: string;
  /** The system has taken the whole response. */
  onAnswered(isLast: boolean): void;
}

/**
 * An exchange by the bytes of a plain request, whose body may still be arriving. The response is written to the socket as Node's server
 * would write it.
 */
export class EdgeExchange extends Exchange implements Turn {
  readonly reader = 'edge';
  readonly isTunnel = false;
  readonly hasSwitched = false;
  isAnswered = false;
  hasBegun = false;
  isEnded = false;
  readonly #connection: ClientConnection;
  readonly #answering: Answering;
  readonly #arriving: ArrivingBody | undefined;
  #brokenBy: Refusal | undefined;
  #lines: FieldLines | undefined;
  #isHeadSent = false;
  #isChunked = false;
  #keepsAlive = true;

  constructor(
    connection: ClientConnection,
    head: PlainHead,
    body: Buffer | ArrivingBody,
    answering: Answering,
  ) {
    super(head, connection.peer, body instanceof ArrivingBody ? undefined : body);
    this.#connection = connection;
    this.#answering = answering;
    if (body instanceof ArrivingBody) this.#arriving = body;
  }

  get isComplete(): boolean {
    return this.#arriving === undefined || this.#arriving.hasArrived;
  }

  /** When it began to be served; undefined if it was complete then. */
  get sinceMs(): number | undefined {
    return this.#arriving?.sinceMs;
  }

  /** Takes the next bytes of the connection while the request is not complete. @returns what follows the body */
  receive(bytes: Buffer): Buffer {
    return this.#arriving?.receive(bytes) ?? bytes;
  }

  get isAwaited(): boolean {
    return this.#arriving?.isAwaited === true;
  }

  get awaitedBytes(): number | undefined {
    return this.isAwaited && !this.isAnswered ? this.#socket.bytesRead : undefined;
  }

  get brokenBy(): Refusal | undefined {
    return this.#brokenBy;
  }

  get isSurplus(): boolean {
    return this.#connection.isSurplus;
  }

  get isClosed(): boolean {
    return this.isAnswered || this.#socket.destroyed;
  }

  get isAbandoned(): boolean {
    return this.isClosed || this.#socket.writableEnded;
  }

  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  get needsDrain(): boolean {
    return this.#socket.writableNeedDrain;
  }

  get #socket(): Socket {
    return this.#connection.socket;
  }

  readBody(maxBytes: number): Readable {
    const body = this.#arriving;
    if (body === undefined) return Readable.from([]);
    if (this.#brokenBy !== undefined) return new Readable().destroy(brokenBody(this.#brokenBy));
    return body.length > maxBytes ? new Readable().destroy(bodyTooLong(maxBytes)) : body;
  }

  dropBody(): void {
    this.#arriving?.destroy();
  }

  breakOff(refusal: Refusal): void {
    if (this.isAnswered) this.#socket.destroy();
    if (this.#brokenBy !== undefined) return;
    this.#brokenBy = refusal;
    this.#arriving?.destroy(brokenBody(refusal));
  }

  endKeepAlive(): void {
    this.#keepsAlive = false;
  }

  closeBehind(): void {
    this.#connection.beginClosing();
  }

  begin(status: number, lines: FieldLines): void {
    if (!lines.isSafe) throw new TypeError('a response field has an octet that is not allowed');
    this.status = status;
    this.#lines = lines;
    this.hasBegun = true;
  }

  write(chunk: Buffer): void {
    const socket = this.#socket;
    if (socket.writableCorked === 0) socket.cork();
    this.#sendHead();
    // An empty chunk would end the body.
    if (this.#isBodyless || chunk.length === 0) return;
    if (this.#isChunked) socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
    socket.write(chunk);
    if (this.#isChunked) socket.write('\r\n', 'latin1');
  }

  endWith({ text, encoding }: WholeBody): void {
    if (this.#isHeadSent || !this.#hasLength) {
      if (text !== '') this.write(Buffer.from(text, encoding));
      this.end();
      return;
    }
    this.isEnded = true;
    this.#isHeadSent = true;
    const head = this.#head();
    this.#socket.write(this.#isBodyless ? head : head + text, encoding);
    this.#noteWritten();
  }

  endThisTurn(body: WholeBody): void {
    this.isEnded = true;
    endThisTurn(this, body);
  }

  flush(): void {
    this.#sendHead();
    if (this.#socket.writableCorked > 0) this.#socket.uncork();
  }

  end(trailers?: FieldLines): void {
    const socket = this.#socket;
    this.isEnded = true;
    if (socket.writableCorked === 0) socket.cork();
    this.#sendHead();
    const lines = trailers?.isSafe === true ? trailers.text : '';
    if (this.#isChunked) socket.write(`0\r\n${lines}\r\n`, 'latin1');
    socket.uncork();
    this.#noteWritten();
  }

  sendInterim(status: number, lines: FieldLines): void {
    if (!this.hasBegun && !this.isClosed) {
      this.#socket.write(`${statusLine(status)}${lines.text}\r\n`, 'latin1');
    }
  }

  switchProtocols(): Socket {
    throw new TypeError('a plain request asks for no other protocol');
  }

  abort(): void {
    this.#socket.destroy();
  }

  /** The response has been sent, or the connection is gone. */
  close(): void {
    // First, because it completes what is logged of the request.
    if (!this.isAnswered) this.taker?.onAbandoned();
    this.onClosed?.();
    if (!this.isAnswered && !this.isComplete) this.#arriving?.destroy(new Error('the client went away'));
  }

  #sendHead(): void {
    if (this.#isHeadSent) return;
    this.#isHeadSent = true;
    this.#isChunked = !this.#hasLength;
    this.#socket.write(this.#head(), 'latin1');
  }

  /** Whether the response has no body, whatever its fields say (RFC 9110 section 6.4.1). */
  get #isBodyless(): boolean {
    return this.head.method === 'HEAD' || this.status === 204 || this.status === 304;
  }

  get #hasLength(): boolean {
    return this.#isBodyless || this.#lines?.hasLength === true;
  }

  /** The head as Node's server writes it. */
  #head(): string {
    let head = statusLine(this.status) + (this.#lines?.text ?? '');
    if (this.#lines?.hasDate !== true) head += `Date: ${httpDate()}\r\n`;
    head += this.#keepsAlive ? this.#answering.keepAliveLines : 'Connection: close\r\n';
    if (this.#isChunked) head += 'Transfer-Encoding: chunked\r\n';
    return `${head}\r\n`;
  }

  /** The whole response has been written. The system nearly always takes it at once: then there is no callback to wait for (1.2 µs). */
  #noteWritten(): void {
    const socket = this.#socket;
    // A socket that cannot be written to closes, and ends the exchange.
    if (socket.destroyed || socket.errored !== null) return;
    if (socket.writableLength === 0) this.#onWritten();
    else
      socket.write('', (error) => {
        if (!error) this.#onWritten();
      });
  }

  #onWritten(): void {
    this.isAnswered = true;
    this.#answering.onAnswered(!this.#keepsAlive);
  }
}
