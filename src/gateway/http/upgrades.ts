import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { isClosing, linger } from './closing.ts';
import { hasBody } from './inspect.ts';

/**
 * Requests to switch protocols. One for WebSocket is a GET that takes the path of every request; any other is
 * served as if it had not asked (RFC 9110 section 7.8), which Node by itself does only where nobody listens.
 */
export class Upgrades {
  readonly #heads = new WeakMap<IncomingMessage, Buffer>();
  readonly #open = new Set<Socket>();

  constructor(app: FastifyInstance) {
    app.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on('error', () => socket.destroy());
      whenAnswered(socket, () => {
        if (isWebSocket(request)) this.#serve(app, request, socket, head);
        else startOver(app, request, socket, head);
      });
    });
  }

  #serve(app: FastifyInstance, request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#heads.set(request, head);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    app.routing(request, responseOn(request, socket));
  }

  /** What came behind a request for WebSocket; undefined for any other request. */
  headOf(request: IncomingMessage): Buffer | undefined {
    return this.#heads.get(request);
  }

  /** Ends every WebSocket connection: the server itself has lost sight of them. */
  breakOff(): void {
    for (const socket of this.#open) socket.destroy();
  }
}

/** The response that Node has assigned to a socket, where it is busy with one. */
interface BusySocket extends Socket {
  readonly _httpMessage?: ServerResponse | null;
}

/** Waits for the answers to requests that were sent before this one; never comes back where the connection ends first. */
function whenAnswered(socket: BusySocket, goOn: () => void): void {
  if (socket.destroyed || isClosing(socket)) return;
  const { _httpMessage: busyWith } = socket;
  if (busyWith) busyWith.once('finish', () => setImmediate(whenAnswered, socket, goOn));
  else goOn();
}

function isWebSocket(request: IncomingMessage): boolean {
  const { method, headers } = request;
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(request);
}

/** A response for a socket that Node has let go of: nothing can follow on it. */
function responseOn(request: IncomingMessage, socket: Socket): ServerResponse<IncomingMessage> {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => linger(socket));
  return response;
}

/** Gives the connection back to the parser, with the same request but for its wish. */
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
  app.server.emit('connection', socket);
}
