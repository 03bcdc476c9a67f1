import type { ServerResponse } from 'node:http';
import type { Refusal } from '../../../domain/problems.ts';
import { countBuffer } from '../../message/buffer-garbage.ts';
import type { ClientConnection, Turn } from '../client-connection.ts';
import type { ClientRequest } from './client-request.ts';
import { onLastResponseSent } from './internals.ts';

/** A request of Node's server, and its response. */
export class NodeTurn implements Turn {
  readonly connection: ClientConnection;
  readonly request: ClientRequest;
  readonly response: ServerResponse;
  /** As it was sent; Fastify replaces the request's own. */
  readonly target: string;
  isAnswered = false;
  /** The whole response has been given, and is sent at the end of this turn of the event loop. */
  isGiven = false;
  hasSwitched = false;
  #isDropping = false;

  constructor(connection: ClientConnection, request: ClientRequest, response: ServerResponse) {
    this.connection = connection;
    this.request = request;
    this.response = response;
    this.target = request.url ?? '';
    request.turn = this;
    connection.turn = this;
    response.once('finish', () => {
      this.isAnswered = true;
    });
  }

  get isComplete(): boolean {
    return this.request.complete;
  }

  get isTunnel(): boolean {
    return this.request.upgrade && this.request.method !== 'CONNECT';
  }

  get isAwaited(): boolean {
    return !this.request.complete && this.request.readableFlowing === true && !this.isAnswered;
  }

  get hasBegun(): boolean {
    return this.response.headersSent;
  }

  get isEnded(): boolean {
    return this.response.writableEnded || this.isGiven;
  }

  breakOff(refusal: Refusal): void {
    this.request.breakOff(refusal);
  }

  makeLast(): void {
    if (this.response.headersSent) {
      this.connection.beginClosing();
      this.response.once('finish', this.connection.linger);
    } else {
      this.response.shouldKeepAlive = false;
      this.closeBehind();
    }
  }

  /** Closes the connection once the response has been sent, instead of Node's own closing. */
  closeBehind(): void {
    this.connection.beginClosing();
    onLastResponseSent(this.connection.socket, this.connection.linger);
  }

  abort(): void {
    this.response.destroy();
  }

  /** Reads and drops what is left of an upload. Node would do this too, but its buffers have to be counted. */
  drop(): void {
    const { request } = this;
    if (this.#isDropping || !request.hasBody) return;
    this.#isDropping = true;
    request.on('data', countBuffer).resume();
  }
}
