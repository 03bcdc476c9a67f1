import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { brokenBy } from '../http/broken.ts';
import { countBuffer } from '../http/buffer-garbage.ts';
import { isContinueExpected } from '../http/inspect.ts';
import { dropUpload } from '../http/lingering-close.ts';
import type { Refusal } from '../problems.ts';

/** Ends an upload that turned out longer than allowed. */
export class BodyTooLongError extends Error {
  constructor(maxBytes: number) {
    super(`A request body may have ${maxBytes} bytes at most.`);
    this.name = 'BodyTooLongError';
  }
}

/** Ends an upload whose rest will not arrive, with the answer for its client. */
export class BrokenBodyError extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.detail);
    this.name = 'BrokenBodyError';
    this.refusal = refusal;
  }
}

/**
 * A request's body on its way to the upstream, chunk by chunk. The client of the upstream destroys the stream that it
 * sends when the upstream fails; destroying an IncomingMessage would reset the client's connection before the client has
 * its response, so this stream is destroyed instead. It counts bytes, and sends `100 Continue` once the upstream takes the
 * body.
 */
export class UploadBody extends Readable {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #maxBytes: number;
  #bytes = 0;
  #hasBegun = false;

  constructor(request: IncomingMessage, response: ServerResponse, maxBytes: number) {
    super();
    this.#request = request;
    this.#response = response;
    this.#maxBytes = maxBytes;
    request.on('broken', this.#onBroken);
  }

  override _read(): void {
    if (this.#hasBegun) {
      this.#request.resume();
      return;
    }
    this.#hasBegun = true;
    if (isContinueExpected(this.#request)) this.#response.writeContinue();
    this.#request
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onGone)
      .on('close', this.#onGone);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const request = this.#request;
    request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onGone);
    request.off('broken', this.#onBroken);
    // So that the connection does not stand still.
    if (!request.destroyed) dropUpload(request);
    callback(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    countBuffer(chunk);
    if (this.#bytes > this.#maxBytes) this.destroy(new BodyTooLongError(this.#maxBytes));
    else if (!this.push(chunk)) this.#request.pause();
  };

  readonly #onEnd = (): void => {
    this.push(null);
  };

  readonly #onBroken = (): void => {
    const refusal = brokenBy(this.#request);
    if (refusal !== undefined) this.destroy(new BrokenBodyError(refusal));
  };

  readonly #onGone = (): void => {
    if (!this.#request.complete) this.destroy(new Error('the client went away'));
  };
}
