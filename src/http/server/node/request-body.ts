import { Readable } from 'node:stream';
import { countBuffer } from '../../message/buffer-garbage.ts';
import { bodyTooLong, brokenBody } from '../../message/whole-body.ts';
import type { NodeTurn } from './node-turn.ts';

/**
 * A request's body, chunk by chunk. Its reader may destroy it: destroying an IncomingMessage would reset the client's connection
 * before the client has its response. It counts bytes, and asks a waiting client for the body once it is read.
 */
export class RequestBody extends Readable {
  readonly #turn: NodeTurn;
  readonly #isContinueExpected: boolean;
  readonly #maxBytes: number;
  #bytes = 0;
  #hasBegun = false;

  constructor(turn: NodeTurn, isContinueExpected: boolean, maxBytes: number) {
    super();
    this.#turn = turn;
    this.#isContinueExpected = isContinueExpected;
    this.#maxBytes = maxBytes;
    turn.request.on('broken', this.#onBroken);
    // It may be broken before anyone reads it.
    if (turn.request.brokenBy !== undefined) this.#onBroken();
  }

  override _read(): void {
    const { request, response } = this.#turn;
    if (this.#hasBegun) {
      request.resume();
      return;
    }
    this.#hasBegun = true;
    if (this.#isContinueExpected) response.writeContinue();
    if (request.destroyed) this.#onGone();
    request
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onGone)
      .on('close', this.#onGone);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const { request } = this.#turn;
    request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onGone);
    request.off('broken', this.#onBroken);
    // So that the connection does not stand still.
    if (!request.destroyed) this.#turn.drop();
    callback(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length;
    countBuffer(chunk);
    if (this.#bytes > this.#maxBytes) this.destroy(bodyTooLong(this.#maxBytes));
    else if (!this.push(chunk)) this.#turn.request.pause();
  };

  readonly #onEnd = (): void => {
    this.push(null);
  };

  readonly #onBroken = (): void => {
    const refusal = this.#turn.request.brokenBy;
    if (refusal !== undefined) this.destroy(brokenBody(refusal));
  };

  readonly #onGone = (): void => {
    // What had arrived of a complete request is gone as well, unless all of it was read.
    if (!this.#turn.request.readableEnded) this.destroy(new Error('the client went away'));
  };
}
