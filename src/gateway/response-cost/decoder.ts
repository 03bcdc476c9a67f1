import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, constants as zlib } from 'node:zlib';
import { MOST_KEPT } from './collected-bytes.ts';
import type { StoppedBy } from './json-body.ts';

/** Truncated bodies give what they have. */
const GZIP = { finishFlush: zlib.Z_SYNC_FLUSH };
const BROTLI = { finishFlush: zlib.BROTLI_OPERATION_FLUSH };

const DECOMPRESSORS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(GZIP),
  'x-gzip': () => createGunzip(GZIP),
  deflate: () => createInflate(GZIP),
  br: () => createBrotliDecompress(BROTLI),
};

/** Text compresses to a twentieth; a bomb to a thousandth. */
const MOST_EXPANSION = 100;

/** Bytes that may wait to be decoded, for which the client's response never waits. */
const MOST_WAITING = 4 * MOST_KEPT;

/** Takes decoded bytes. Returns why no more of them are needed; undefined if they are. */
type TakeDecoded = (decoded: Buffer) => StoppedBy | undefined;

/** Decodes a copy of a body beside its transfer, in another thread. */
export class Decoder {
  readonly #stream: Transform;
  readonly #takes: TakeDecoded;
  #encodedBytes = 0;
  #decodedBytes = 0;
  #stoppedBy: StoppedBy | undefined;
  readonly #isDone: Promise<void>;

  /** @returns undefined if the coding is unknown */
  static of(coding: string, takes: TakeDecoded): Decoder | undefined {
    const decompress = Object.hasOwn(DECOMPRESSORS, coding) ? DECOMPRESSORS[coding] : undefined;
    return decompress && new Decoder(decompress(), takes);
  }

  private constructor(stream: Transform, takes: TakeDecoded) {
    this.#stream = stream;
    this.#takes = takes;
    this.#isDone = new Promise((resolve) => {
      stream.on('data', (decoded: Buffer) => this.#onDecoded(decoded));
      stream.on('error', () => this.#stop('encoding'));
      stream.on('end', () => resolve());
      stream.on('close', () => resolve());
    });
  }

  add(chunk: Buffer): void {
    if (this.#stoppedBy !== undefined) return;
    this.#encodedBytes += chunk.length;
    // The chunk is valid during this call only.
    this.#stream.write(Buffer.from(chunk));
    if (this.#stream.writableLength > MOST_WAITING) this.#stop('too-long');
  }

  /** @returns why not all of the body was decoded */
  async end(): Promise<StoppedBy | undefined> {
    if (this.#stoppedBy === undefined) this.#stream.end();
    await this.#isDone;
    return this.#stoppedBy;
  }

  #onDecoded(decoded: Buffer): void {
    this.#decodedBytes += decoded.length;
    const isBomb = this.#decodedBytes > MOST_KEPT + MOST_EXPANSION * this.#encodedBytes;
    const reason = isBomb ? 'too-long' : this.#takes(decoded);
    if (reason !== undefined) this.#stop(reason);
  }

  #stop(reason: StoppedBy): void {
    this.#stoppedBy ??= reason;
    this.#stream.destroy();
  }
}
