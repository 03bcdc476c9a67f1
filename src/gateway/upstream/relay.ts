import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Dispatcher } from 'undici';
import { responseFields } from '../http/headers.ts';
import { closeAfterResponse, isUploadUnfinished } from '../http/lingering-close.ts';
import type { RequestContext } from '../request-context.ts';
import { endWith, gatewayFields, respond } from '../respond.ts';
import { codeOf, isRepeatable, isStaleSocket, refusalOf } from './failures.ts';
import type { Upstream } from './upstreams.ts';

type ResponseHeaders = Record<string, string | string[] | undefined>;

/** A longer answer is not worth the copy that joins it to its header. */
const MAX_JOINED_BYTES = 16_384;

/** Copies one upstream response into the client's, chunk by chunk, as fast as the slower of the two. */
export class Relay implements Dispatcher.DispatchHandler {
  readonly #upstream: Upstream;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #response: ServerResponse;
  readonly #context: RequestContext;
  readonly #baseUrl: string;
  readonly #sentMs = performance.now();
  #controller: Dispatcher.DispatchController | undefined;
  #canRepeat: boolean;
  #isPaused = false;
  #bodyLength = Number.NaN;

  constructor(
    upstream: Upstream,
    options: Dispatcher.DispatchOptions,
    response: ServerResponse,
    context: RequestContext,
    baseUrl: string,
  ) {
    this.#upstream = upstream;
    this.#options = options;
    this.#response = response;
    this.#context = context;
    this.#baseUrl = baseUrl;
    this.#canRepeat = isRepeatable(options.method, options.body !== null);
    response.on('close', () => {
      if (!response.writableFinished) this.#controller?.abort(new Error('the client went away'));
    });
  }

  /** Sends the request; the answer, or a 503 in its place, goes to the client. */
  start(): void {
    this.#upstream.enter(this.#context.caller === undefined);
    this.#upstream.pool.dispatch(this.#options, this);
  }

  /** To be called once, when the upstream is done with the request. */
  protected leave(): void {
    this.#upstream.leave(this.#context.caller === undefined);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The client may have left while the request waited for a socket.
    if (this.#response.destroyed) controller.abort(new Error('the client went away'));
  }

  onResponseStarted(): void {
    this.#canRepeat = false;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    const response = this.#response;
    // A 101 that names no protocol comes here.
    if (status <= 101) throw new TypeError('not a status that can be forwarded');
    if (status < 200) {
      writeInterim(response, status, headers);
      return;
    }
    // Its body is coded in a way that the client would not be told of.
    if (!isChunkedAtMost(headers['transfer-encoding'])) throw new TypeError('unknown Transfer-Encoding');
    const context = this.#context;
    context.upstreamMs = performance.now() - this.#sentMs;
    context.upstreamStatus = status;
    const fields = responseFields(headers, status);
    fields.push(...gatewayFields(context));
    if (isUploadUnfinished(response.req)) {
      fields.push('Connection', 'close');
      closeAfterResponse(response.req);
    }
    response.writeHead(status, fields);
    this.#bodyLength = Number(headers['content-length']);
    // The header waits for a body that may be long in coming, but joins one that came with it.
    process.nextTick(flushHeader, response);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (chunk.length === this.#bodyLength && chunk.length <= MAX_JOINED_BYTES) {
      // All of it at once: as a string it shares one write with the header.
      endWith(this.#response, chunk.toString('latin1'), 'latin1');
      return;
    }
    if (this.#response.write(chunk)) return;
    controller.pause();
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#response.on('drain', () => controller.resume());
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: ResponseHeaders): void {
    this.leave();
    for (const _ in trailers) {
      addTrailers(this.#response, trailers);
      break;
    }
    if (!this.#response.writableEnded) this.#response.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.leave();
    const response = this.#response;
    if (this.#canRepeat && isStaleSocket(error) && !response.destroyed) {
      this.#canRepeat = false;
      this.start();
      return;
    }
    this.#context.upstreamError = codeOf(error);
    // Cut short, the client sees a truncated body as one: the status line is already gone.
    if (response.headersSent || response.destroyed) response.destroy();
    else respond(response, this.#context, refusalOf(error), this.#baseUrl);
  }
}

function isChunkedAtMost(encoding: string | string[] | undefined): boolean {
  return encoding === undefined || String(encoding).toLowerCase() === 'chunked';
}

function flushHeader(response: ServerResponse): void {
  if (!response.writableEnded) response.flushHeaders();
}

/** An interim answer is forwarded as it is (RFC 9110 section 15.2), but never to a 1.0 client. */
function writeInterim(response: ServerResponse, status: number, headers: ResponseHeaders): void {
  if (response.req.httpVersion !== '1.1' || response.headersSent || response.destroyed) return;
  response.socket?.write(
    headText(status, STATUS_CODES[status] ?? '', responseFields(headers, status)),
    'latin1',
  );
}

/** A response's head, for where Node's ServerResponse writes none. */
export function headText(status: number, reason: string, fields: readonly string[]): string {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let index = 0; index < fields.length; index += 2) text += `${fields[index]}: ${fields[index + 1]}\r\n`;
  return `${text}\r\n`;
}

/** Trailers go on where the response is chunked; elsewhere they may be dropped (RFC 9110 section 6.5.1). */
function addTrailers(response: ServerResponse, trailers: ResponseHeaders): void {
  const fields = responseFields(trailers, 200);
  const pairs: [string, string][] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] ?? '';
    if (name !== 'content-length') pairs.push([name, fields[index + 1] ?? '']);
  }
  try {
    response.addTrailers(pairs);
  } catch {}
}
