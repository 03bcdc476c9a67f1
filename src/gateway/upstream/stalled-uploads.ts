import type { Turns, Visit } from './turns/turns.ts';

const CHECK_MS = 1_000;

/** An upload stalls if it makes less than 1 KiB of progress a second over so many checks. */
const CHECKS = 3;
const ENOUGH_BYTES = CHECKS * 1_024;

/** A request whose body is streamed to the upstream. */
export interface StreamedRequest {
  readonly visit: Visit | undefined;
  /** How much its client has sent; undefined if something else is waited for. */
  readonly awaitedBytes: number | undefined;
  /** Leaves the upstream at once. */
  giveWay(): void;
}

/** The uploads of an upstream. Those that stall give way to requests that wait for a turn. */
export class StalledUploads {
  readonly #turns: Turns;
  readonly #uploads = new Map<StreamedRequest, Progress>();
  #timer: NodeJS.Timeout | undefined;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  add(request: StreamedRequest): void {
    this.#uploads.set(request, new Progress());
    this.#timer ??= setInterval(() => this.check(), CHECK_MS).unref();
  }

  remove(request: StreamedRequest): void {
    if (!this.#uploads.delete(request) || this.#uploads.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** To be called once a second: ends as many stalled uploads as others wait for. The payer with the most requests at the upstream loses the first. */
  check(): void {
    const stalled: { readonly request: StreamedRequest; readonly visit: Visit }[] = [];
    for (const [request, progress] of this.#uploads) {
      const { visit } = request;
      if (progress.isStalled(request.awaitedBytes) && visit !== undefined) stalled.push({ request, visit });
    }
    stalled.sort((one, other) => other.visit.payer.present - one.visit.payer.present);
    for (const { request, visit } of stalled) if (this.#turns.isAwaited(visit)) request.giveWay();
  }
}

/** How fast one upload arrives. It counts checks: after a pause of the whole process, its bytes have not been read yet. */
class Progress {
  #bytes: number | undefined;
  #checks = 0;

  isStalled(bytes: number | undefined): boolean {
    if (bytes === undefined || this.#bytes === undefined || bytes - this.#bytes >= ENOUGH_BYTES) {
      this.#bytes = bytes;
      this.#checks = 0;
    } else this.#checks++;
    return this.#checks >= CHECKS;
  }
}
