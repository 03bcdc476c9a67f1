import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A request for one or two buckets, by their numbers. */
export interface SpooledRequest {
  readonly atUs: number;
  readonly cost: number;
  readonly bucket: number;
  /** -1 if there is no second bucket. */
  readonly second: number;
}

/** Numbers per request. */
const FIELDS = 4;

const REQUESTS_PER_CHUNK = 32_768;

/** Requests in a temporary file that can be read repeatedly, because standard input can be read only once. */
export class Spool {
  readonly #file: number;
  readonly #chunk = new Float64Array(REQUESTS_PER_CHUNK * FIELDS);
  #filled = 0;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'weir-replay-'));
    this.#file = openSync(join(folder, 'requests'), 'w+');
    // The open file stays readable after it is unlinked, and is deleted when this process ends.
    rmSync(folder, { recursive: true });
  }

  write({ atUs, cost, bucket, second }: SpooledRequest): void {
    this.#chunk.set([atUs, cost, bucket, second], this.#filled);
    this.#filled += FIELDS;
    if (this.#filled === this.#chunk.length) this.#flush();
  }

  /** Calls `use` for every request in the order of writing. Nothing may be written afterwards. */
  forEach(use: (request: SpooledRequest) => void): void {
    this.#flush();
    const chunk = this.#chunk;
    const bytes = Buffer.from(chunk.buffer);
    let position = 0;
    for (;;) {
      const read = readSync(this.#file, bytes, 0, bytes.length, position);
      if (read === 0) return;
      position += read;
      for (let at = 0; at < read / Float64Array.BYTES_PER_ELEMENT; at += FIELDS) {
        use({
          atUs: chunk[at] ?? 0,
          cost: chunk[at + 1] ?? 0,
          bucket: chunk[at + 2] ?? 0,
          second: chunk[at + 3] ?? 0,
        });
      }
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #flush(): void {
    let written = 0;
    const bytes = Buffer.from(this.#chunk.buffer, 0, this.#filled * Float64Array.BYTES_PER_ELEMENT);
    while (written < bytes.length) written += writeSync(this.#file, bytes, written);
    this.#filled = 0;
  }
}
