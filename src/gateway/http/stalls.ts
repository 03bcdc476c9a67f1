import type { Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connectionEvent } from '../tls/server.ts';
import { markBroken, TOO_SLOW } from './broken.ts';
import { responseOf, sentWhileWaiting } from './node-internals.ts';

/** How long each side of a connection may make no progress while the other waits. */
export interface StallLimits {
  /** For a client that does not read its response. */
  readonly sendTimeoutMs: number;
  /** For a client that does not send the rest of its body. */
  readonly bodyTimeoutMs: number;
}

/** A connection is closed at most a quarter of its time-out late, and never later than this. */
const MAX_LOOK_MS = 5_000;

/** How long a number has stayed the same. */
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
 * Closes connections whose other side makes no progress. Checking all of them every few seconds is cheaper than a timer per
 * write.
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
    server.on(connectionEvent(server), (socket: Socket) => this.watch(socket));
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

/** Resets the connection: a plain close would keep the unsent bytes in the system's memory for minutes. */
function reset(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy();
  else socket.resetAndDestroy();
}
