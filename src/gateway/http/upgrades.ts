import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { connectionEvent } from '../tls/server.ts';
import { hasBody } from './inspect.ts';
import { isClosing, linger } from './lingering-close.ts';
import { responseOf } from './node-internals.ts';

/**
 * Requests to switch protocols. A WebSocket request is a GET that passes every stage; CONNECT is refused by the first. Other
 * upgrades are ignored (RFC 9110 section 7.8); Node does that itself only without an `upgrade` listener.
 */
export class Upgrades {
  readonly #heads = new WeakMap<IncomingMessage, Buffer>();
  readonly #open = new Set<Socket>();

  constructor(app: FastifyInstance) {
    app.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      whenAnswered(guarded(socket), () => {
        if (isWebSocket(request)) this.#serve(app, request, socket, head);
        else startOver(app, request, socket, head);
      });
    });
    app.server.on('connect', (request: IncomingMessage, socket: Socket) => {
      whenAnswered(guarded(socket), () => app.routing(request, responseOn(request, socket)));
    });
  }

  #serve(app: FastifyInstance, request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#heads.set(request, head);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    app.routing(request, responseOn(request, socket));
  }

  /** The bytes that followed a WebSocket request; undefined for any other request. */
  headOf(request: IncomingMessage): Buffer | undefined {
    return this.#heads.get(request);
  }

  /** Closes every WebSocket connection; the server no longer tracks them. */
  breakOff(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** Node has removed its own listeners; one connection may cause many of these events. */
function guarded(socket: Socket): Socket {
  return socket.off('error', ignoreError).on('error', ignoreError);
}

/** The socket closes by itself, and with it the response. */
function ignoreError(): void {}

/** Calls back once earlier requests on the connection are answered; never if the connection ends first. */
function whenAnswered(socket: Socket, goOn: () => void): void {
  if (socket.destroyed || isClosing(socket)) return;
  const response = responseOf(socket);
  if (response === undefined) {
    goOn();
    return;
  }
  // Node no longer emits `drain` on that response.
  const onDrain = () => response.emit('drain');
  socket.on('drain', onDrain);
  response.once('finish', () => {
    socket.off('drain', onDrain);
    setImmediate(whenAnswered, socket, goOn);
  });
}

/** HTTP/1.0 has no upgrade (RFC 9110 section 7.8). */
function isWebSocket(request: IncomingMessage): boolean {
  const { method, headers, httpVersion } = request;
  const isAsked = headers.upgrade?.toLowerCase() === 'websocket' && httpVersion === '1.1';
  return method === 'GET' && isAsked && !hasBody(request);
}

/** A response for a socket that Node has detached; the connection closes after it. */
function responseOn(request: IncomingMessage, socket: Socket): ServerResponse<IncomingMessage> {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => linger(socket));
  return response;
}

/** Returns the connection to the parser, with the same request without its Upgrade field. */
function startOver(app: FastifyInstance, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders, headers } = request;
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (!/^(?:connection|upgrade)$/i.test(name)) text += `${name}: ${rawHeaders[index + 1]}\r\n`;
  }
  const options = (headers.connection ?? '').split(',').filter((option) => !/^\s*upgrade\s*$/i.test(option));
  if (options.length > 0) text += `Connection: ${options.join(',')}\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), head]));
  app.server.emit(connectionEvent(app.server), socket);
}
