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
  /** Set while it is one of the uploads of an upstream. */
  upload: WatchedUpload | undefined;
  /** Leaves the upstream at once. */
  giveWay(): void;
}

/** The uploads of an upstream. Those that stall give way to requests that wait for a turn. */
export class StalledUploads {
  readonly #turns: Turns;
  /** Not a map or a set, whose outgrown tables would keep past requests in memory (docs/decisions/0011). */
  readonly #uploads: WatchedUpload[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  add(request: StreamedRequest): void {
    request.upload = new WatchedUpload(request, this.#uploads.length);
    this.#uploads.push(request.upload);
    this.#timer ??= setInterval(() => this.check(), CHECK_MS).unref();
  }

  /** In constant time: the last upload moves to where this one was. */
  remove(request: StreamedRequest): void {
    const { upload } = request;
    if (upload === undefined) return;
    request.upload = undefined;
    const last = this.#uploads.pop();
    if (last !== undefined && last !== upload) {
      this.#uploads[upload.place] = last;
      last.place = upload.place;
    }
    if (this.#uploads.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** To be called once a second: ends as many stalled uploads as others wait for. The payer with the most requests at the upstream loses the first. */
  check(): void {
    const stalled: { readonly request: StreamedRequest; readonly visit: Visit }[] = [];
    for (const upload of this.#uploads) {
      const { visit } = upload.request;
      if (upload.isStalled() && visit !== undefined) stalled.push({ request: upload.request, visit });
    }
    stalled.sort((one, other) => other.visit.payer.present - one.visit.payer.present);
    for (const { request, visit } of stalled) if (this.#turns.isAwaited(visit)) request.giveWay();
  }
}

/** One upload, and how fast it arrives. It counts checks: after a pause of the whole process, its bytes have not been read yet. */
export class WatchedUpload {
  readonly request: StreamedRequest;
  /** Among the uploads of its upstream. */
  place: number;
  #bytes: number | undefined;
  #checks = 0;

  constructor(request: StreamedRequest, place: number) {
    this.request = request;
    this.place = place;
  }

  isStalled(): boolean {
    const bytes = this.request.awaitedBytes;
    if (bytes === undefined || this.#bytes === undefined || bytes - this.#bytes >= ENOUGH_BYTES) {
      this.#bytes = bytes;
      this.#checks = 0;
    } else this.#checks++;
    return this.#checks >= CHECKS;
  }
}
