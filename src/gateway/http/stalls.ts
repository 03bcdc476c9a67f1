import type { Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { markBroken, TOO_SLOW } from './broken.ts';
import { responseOf, sentWhileWaiting } from './node-internals.ts';

/** How long either side of a connection may stand still while the other waits. */
export interface StallLimits {
  /** For a client that does not read what it asked for. */
  readonly sendTimeoutMs: number;
  /** For a client that does not send the body it announced. */
  readonly bodyTimeoutMs: number;
}

/** The longest a connection may overstay is a quarter of its time-out, and never more than this. */
const MAX_LOOK_MS = 5_000;

/** Since when a number has stayed the same. */
class Standstill {
  #last: number | undefined;
  #sinceMs = 0;

  /** @returns for how long `progress` has not changed; 0 while it is undefined, when nothing is waited for */
  lengthMs(progress: number | undefined, nowMs: number): number {
    if (progress === undefined || progress !== this.#last) this.#sinceMs = nowMs;
    this.#last = progress;
    return nowMs - this.#sinceMs;
  }
}

/**
 * Ends connections whose other side makes no progress. One look at all of them every few seconds costs less than a timer
 * for each write.
 */
export class Stalls {
  readonly #limits: StallLimits;
  readonly #watched = new Map<Socket, { readonly sent: Standstill; readonly received: Standstill }>();
  readonly #timer: NodeJS.Timeout;

  constructor(limits: StallLimits) {
    this.#limits = limits;
    const shortestMs = Math.min(limits.sendTimeoutMs, limits.bodyTimeoutMs);
    this.#timer = setInterval(() => this.#look(), Math.min(MAX_LOOK_MS, Math.ceil(shortestMs / 4)));
    this.#timer.unref();
  }

  /** Watches every connection of a server, until the server closes. */
  watchServer(server: Server): void {
    server.on('connection', (socket: Socket) => this.watch(socket));
    server.once('close', () => clearInterval(this.#timer));
  }

  /** Watches one more connection, such as the upstream's side of a tunnel. */
  watch(socket: Duplex): void {
    if (!(socket instanceof Socket) || this.#watched.has(socket)) return;
    this.#watched.set(socket, { sent: new Standstill(), received: new Standstill() });
    socket.once('close', () => this.#watched.delete(socket));
  }

  #look(): void {
    const nowMs = performance.now();
    const { sendTimeoutMs, bodyTimeoutMs } = this.#limits;
    for (const [socket, { sent, received }] of this.#watched) {
      if (sent.lengthMs(sentWhileWaiting(socket), nowMs) >= sendTimeoutMs) {
        reset(socket);
        continue;
      }
      const request = responseOf(socket)?.req;
      const isAwaited = request !== undefined && !request.complete && request.readableFlowing === true;
      if (received.lengthMs(isAwaited ? socket.bytesRead : undefined, nowMs) >= bodyTimeoutMs) {
        if (request !== undefined) markBroken(request, TOO_SLOW);
      }
    }
  }
}

/** A plain close would leave what is unsent in the system's memory for minutes. */
function reset(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy();
  else socket.resetAndDestroy();
}
