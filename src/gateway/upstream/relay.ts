import { type ServerResponse, STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import { pushCors } from '../http/cors.ts';
import { responseFields } from '../http/headers.ts';
import { closeAfterResponse, isUploadUnfinished } from '../http/lingering-close.ts';
import { endWith } from '../http/whole-response.ts';
import type { RequestContext } from '../request-context.ts';
import { gatewayFields, respond } from '../respond.ts';
import { codeOf, isRepeatable, refusalOf } from './failures.ts';
import { UpstreamError } from './http1/errors.ts';
import type { ResponseHandler, Transfer, UpstreamRequest } from './http1/request.ts';
import type { ResponseHead } from './http1/response-head.ts';
import type { Traffic, Upstream } from './upstreams.ts';

/** Joining a body of this length to its head costs less than a second piece to write. */
const MAX_JOINED_BYTES = 16_384;

/** Copies one upstream response to the client, chunk by chunk, as fast as the slower of the two. */
export class Relay implements ResponseHandler {
  protected readonly response: ServerResponse;
  protected readonly context: RequestContext;
  readonly #upstream: Upstream;
  readonly #baseUrl: string;
  readonly #sentMs = performance.now();
  #request: UpstreamRequest;
  #transfer: Transfer | undefined;
  #head: ResponseHead | undefined;
  #canRepeat: boolean;
  #isHeadSent = false;
  #isWaitingForDrain = false;

  constructor(
    upstream: Upstream,
    request: Omit<UpstreamRequest, 'handler'>,
    response: ServerResponse,
    context: RequestContext,
    baseUrl: string,
  ) {
    this.response = response;
    this.context = context;
    this.#upstream = upstream;
    this.#baseUrl = baseUrl;
    this.#request = { ...request, handler: this };
    this.#canRepeat = isRepeatable(request.method, request.body !== null);
    response.on('close', () => {
      if (!response.writableFinished) this.#abandon();
    });
    if (request.body instanceof Readable) request.body.on('error', this.#onBodyError);
  }

  /** Sends the request; the response, or a 503 in its place, goes to the client. */
  start(): void {
    this.#upstream.enter(trafficOf(this.context));
    this.#upstream.pool.dispatch(this.#request);
  }

  /** To be called once, when the upstream is done with the request. */
  protected leave(): void {
    this.#transfer = undefined;
    this.#upstream.leave(trafficOf(this.context));
  }

  onConnection(transfer: Transfer): void {
    this.#transfer = transfer;
  }

  /** An interim response is forwarded as it is (RFC 9110 section 15.2), but never to a 1.0 client. */
  onInterim({ status, fields, connection }: ResponseHead): void {
    const { response } = this;
    if (response.req.httpVersion !== '1.1' || response.headersSent || response.destroyed) return;
    const sent = responseFields(fields, connection, status);
    response.socket?.write(headText(status, STATUS_CODES[status] ?? '', sent), 'latin1');
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    const { context, response } = this;
    context.upstreamMs = performance.now() - this.#sentMs;
    context.upstreamStatus = head.status;
    const fields = responseFields(head.fields, head.connection, head.status);
    this.#upstream.references.rewrite(fields, response.req);
    pushCors(fields, context.corsOrigin);
    fields.push(...gatewayFields(context));
    if (isUploadUnfinished(response.req)) {
      fields.push('Connection', 'close');
      closeAfterResponse(response.req);
    }
    response.writeHead(head.status, fields);
  }

  onData(chunk: Buffer): void {
    const { response } = this;
    this.#isHeadSent = true;
    if (chunk.length === this.#head?.bodyLength && chunk.length <= MAX_JOINED_BYTES) {
      // The whole body: as a string it shares one write with the head.
      endWith(response, { text: chunk.toString('latin1'), encoding: 'latin1' });
    } else response.write(chunk);
  }

  onFlush(): boolean {
    const { response } = this;
    if (this.#head === undefined || response.destroyed) return true;
    if (!response.writableEnded) {
      this.#sendHead();
      // Node would gather what is written in this tick; the chunks are only valid now.
      if (response.socket?.writableCorked) response.socket.uncork();
      if (response.writableNeedDrain && response.writableLength > 0) this.#waitForDrain();
    }
    return response.writableLength === 0;
  }

  onEnd(trailers: readonly string[]): void {
    this.leave();
    if (trailers.length > 0) addTrailers(this.response, trailers);
    if (!this.response.writableEnded) this.response.end();
  }

  onError(error: Error, isStale: boolean): void {
    this.leave();
    const { response } = this;
    if (isStale && this.#canRepeat && !response.destroyed) {
      this.#canRepeat = false;
      this.#request = { ...this.#request, needsNewConnection: true };
      this.start();
      return;
    }
    this.context.upstreamError = codeOf(error);
    if (error instanceof UpstreamError) this.context.upstreamErrorDetail = error.message;
    // The status line is already sent: an incomplete body is how the client learns of the failure.
    if (response.headersSent || response.destroyed) response.destroy();
    else respond(response, this.context, refusalOf(error), this.#baseUrl);
  }

  /** A body may break while its request waits for a connection; later, the connection reports it. */
  readonly #onBodyError = (error: Error): void => {
    if (this.#transfer === undefined && this.#upstream.pool.cancel(this.#request)) this.onError(error, false);
  };

  /** The client left. */
  #abandon(): void {
    if (this.#transfer !== undefined) this.#transfer.abort();
    else if (this.#upstream.pool.cancel(this.#request)) this.leave();
  }

  /** The body may be long in coming. */
  #sendHead(): void {
    if (this.#isHeadSent) return;
    this.#isHeadSent = true;
    this.response.flushHeaders();
  }

  #waitForDrain(): void {
    this.#transfer?.pause();
    if (this.#isWaitingForDrain) return;
    this.#isWaitingForDrain = true;
    this.response.once('drain', () => {
      this.#isWaitingForDrain = false;
      this.#transfer?.resume();
    });
  }
}

/** A response's head, for where Node's ServerResponse writes none. */
export function headText(status: number, reason: string, fields: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let index = 0; index < fields.length; index += 2) text += `${fields[index]}: ${fields[index + 1]}\r\n`;
  return `${text}\r\n`;
}

/** Trailers are forwarded where the response is chunked; elsewhere they may be dropped (RFC 9110 section 6.5.1). */
function addTrailers(response: ServerResponse, trailers: readonly string[]): void {
  const fields = responseFields(trailers, undefined, response.statusCode);
  const pairs: [string, string][] = [];
  for (let index = 0; index < fields.length; index += 2)
    pairs.push([fields[index] ?? '', fields[index + 1] ?? '']);
  try {
    response.addTrailers(pairs);
  } catch {}
}

/** Whether such requests already use their whole share of the upstream's connections. */
export function isCrowdedOut(upstream: Upstream, context: RequestContext): boolean {
  const traffic = trafficOf(context);
  return traffic !== 'caller' && !upstream.hasRoomFor(traffic);
}

/** Whose share of the upstream's connections a request uses. */
function trafficOf({ caller, publicClient }: RequestContext): Traffic {
  if (caller !== undefined) return 'caller';
  return publicClient === undefined ? 'uncharged' : 'public';
}
