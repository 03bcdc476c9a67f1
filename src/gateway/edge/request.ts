import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { PlainHead } from './plain-head.ts';

/** A plain request with its body: as much of an IncomingMessage as Fastify and the gateway use. It is no stream. */
export class EdgeRequest {
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly httpVersionMinor = 1;
  readonly socket: Socket;
  readonly method: string;
  readonly rawHeaders: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly complete: boolean;
  /** Undefined if the client ended before it was complete. */
  readonly body: Buffer | undefined;
  /** Fastify replaces it. */
  url: string;

  constructor(socket: Socket, { method, target, fields, headers }: PlainHead, body: Buffer | undefined) {
    this.socket = socket;
    this.method = method;
    this.rawHeaders = fields;
    this.headers = headers;
    this.complete = body !== undefined;
    this.body = body;
    this.url = target;
  }

  /** Nobody listens: there is no more of a body to wait for. */
  emit(): boolean {
    return false;
  }
}

/** The body of a request that arrived whole; undefined if it is a stream. */
export function wholeBodyOf(request: IncomingMessage | EdgeRequest): Buffer | undefined {
  return request instanceof EdgeRequest ? request.body : undefined;
}
