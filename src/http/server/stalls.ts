import type { Socket } from 'node:net';
import { carrierOf, sentWhileWaiting } from './node/internals.ts';

/** How long each side of a connection may make no progress while the other waits. */
export interface StallLimits {
  /** For a client that does not read its response. */
  readonly sendTimeoutMs: number;
  /** For a client that does not send the rest of its body. */
  readonly bodyTimeoutMs: number;
  /** Whether a client that ends its side while it waits for a response has gone, or still gets the response. */
  readonly halfClose: 'abort' | 'serve';
}

/** How long a number has stayed the same. */
export class Standstill {
  #last: number | undefined;
  #sinceMs = 0;

  /** @returns for how long `progress` has not changed; 0 while it is undefined, when nothing is waited for */
  lengthMs(progress: number | undefined, nowMs: number): number {
    if (progress === undefined || progress !== this.#last) this.#sinceMs = nowMs;
    this.#last = progress;
    return nowMs - this.#sinceMs;
  }
}

/** Closes a socket whose other side does not read. Looking at it now and then is cheaper than a timer per write. */
export class SendTimeout {
  readonly #socket: Socket;
  readonly #sent = new Standstill();

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  check(timeoutMs: number, nowMs: number): void {
    if (this.#sent.lengthMs(sentWhileWaiting(this.#socket), nowMs) >= timeoutMs) reset(this.#socket);
  }
}

/** Resets a connection: a plain close would keep the unsent bytes in the system's memory for minutes. */
function reset(socket: Socket): void {
  const carrier = carrierOf(socket);
  // The upstream's side of a tunnel may be TLS without a carrier that can be reset.
  if ('encrypted' in carrier) carrier.destroy();
  else carrier.resetAndDestroy();
}
