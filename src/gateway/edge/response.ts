import { EventEmitter } from 'node:events';
import { type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Body } from '../http/whole-response.ts';
import { isFieldValue, isToken } from '../http1/grammar.ts';
import type { EdgeRequest } from './request.ts';

/** The responses to plain requests that are in progress. */
export const edgeResponses = new WeakMap<Socket, EdgeResponse>();

/**
 * The response to a plain request: as much of a ServerResponse as Fastify and the gateway use. If its head and body are there at
 * once, with a Content-Length, it is written in one piece. Any other is written by a real ServerResponse, made when it is needed.
 */
export class EdgeResponse extends EventEmitter {
  readonly req: EdgeRequest;
  readonly socket: Socket;
  shouldKeepAlive = true;
  headersSent = false;
  statusCode = 200;
  writableEnded = false;
  writableFinished = false;
  readonly #keepAliveSeconds: number;
  #fields: readonly string[] = [];
  #real: ServerResponse | undefined;

  constructor(req: EdgeRequest, keepAliveTimeoutMs: number) {
    super();
    this.req = req;
    this.socket = req.socket;
    this.#keepAliveSeconds = Math.floor(keepAliveTimeoutMs / 1000);
  }

  get destroyed(): boolean {
    return this.writableFinished || this.socket.destroyed;
  }

  get writableLength(): number {
    return this.#real?.writableLength ?? this.socket.writableLength;
  }

  /** That of the socket, which is over when the socket emits `drain`: a real response only learns of it from Node's server. */
  get writableNeedDrain(): boolean {
    return this.socket.writableNeedDrain;
  }

  /**
   * @param fields name, value, name, value
   * @throws TypeError if a field could break its line
   */
  writeHead(status: number, fields: readonly string[]): void {
    if (!fields.every(isWritable)) throw new TypeError('a response field has an octet that is not allowed');
    this.statusCode = status;
    this.#fields = fields;
    this.headersSent = true;
    if (names(fields, 'connection')) this.shouldKeepAlive = false;
    if (this.#real !== undefined) this.#writeRealHead(this.#real);
  }

  /** Fastify sets `Connection: close` in this way while it closes. */
  setHeader(name: string, value: string): void {
    this.#realResponse().setHeader(name, value);
  }

  flushHeaders(): void {
    this.#realResponse().flushHeaders();
  }

  write(chunk: string | Buffer, encoding: BufferEncoding = 'utf8'): boolean {
    return this.#realResponse().write(chunk, encoding);
  }

  addTrailers(trailers: readonly [string, string][]): void {
    this.#realResponse().addTrailers(trailers);
  }

  end(): void {
    if (this.endWhole({ text: '', encoding: 'latin1' })) return;
    this.writableEnded = true;
    this.#realResponse().end();
  }

  /** Writes head and body in one piece. @returns false, and does nothing, if that takes a real response */
  endWhole({ text, encoding }: Body): boolean {
    const head = this.headersSent && this.shouldKeepAlive && !this.#real ? this.#wholeHead() : undefined;
    if (head === undefined) return false;
    this.writableEnded = true;
    this.socket.write(this.req.method === 'HEAD' ? head : head + text, encoding, this.#onWritten);
    return true;
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** The head as a ServerResponse writes it; undefined without a Content-Length. */
  #wholeHead(): string | undefined {
    const fields = this.#fields;
    if (!names(fields, 'content-length')) return undefined;
    let head = `HTTP/1.1 ${this.statusCode} ${STATUS_CODES[this.statusCode] ?? 'unknown'}\r\n`;
    for (let index = 0; index < fields.length; index += 2)
      head += `${fields[index]}: ${fields[index + 1]}\r\n`;
    if (!names(fields, 'date')) head += `Date: ${httpDate()}\r\n`;
    return `${head}Connection: keep-alive\r\nKeep-Alive: timeout=${this.#keepAliveSeconds}\r\n\r\n`;
  }

  #realResponse(): ServerResponse {
    if (this.#real !== undefined) return this.#real;
    const real = new ServerResponse(this.req as unknown as IncomingMessage);
    this.#real = real;
    real.once('finish', () => {
      real.detachSocket(this.socket);
      this.#onWritten();
    });
    real.assignSocket(this.socket);
    if (this.headersSent) this.#writeRealHead(real);
    return real;
  }

  #writeRealHead(real: ServerResponse): void {
    if (real.hasHeader('Connection')) this.shouldKeepAlive = false;
    real.shouldKeepAlive = this.shouldKeepAlive;
    const keepAlive = ['Connection', 'keep-alive', 'Keep-Alive', `timeout=${this.#keepAliveSeconds}`];
    real.writeHead(
      this.statusCode,
      this.shouldKeepAlive ? [...this.#fields, ...keepAlive] : [...this.#fields],
    );
  }

  readonly #onWritten = (error?: Error | null): void => {
    // The socket closes then.
    if (error) return;
    this.writableFinished = true;
    this.emit('finish');
  };
}

const isWritable = (text: string, index: number) => (index % 2 === 0 ? isToken(text) : isFieldValue(text));

/** @param lower a name in lower case */
function names(fields: readonly string[], lower: string): boolean {
  const isIt = (name: string) => name.length === lower.length && name.toLowerCase() === lower;
  return fields.some((name, index) => index % 2 === 0 && isIt(name));
}

let date = { second: 0, text: '' };

/** The time as RFC 9110 section 5.6.7 writes it, made once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== date.second) date = { second, text: new Date(second * 1000).toUTCString() };
  return date.text;
}
