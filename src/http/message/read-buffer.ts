import { countBuffer } from './buffer-garbage.ts';

/** Enough for most responses. */
const SMALL_BYTES = 16_384;
/** For connections whose reads fill the small one: fewer and larger reads and writes. */
const LARGE_BYTES = 131_072;

/** The memory that one connection reads into: the same again and again, unless what was read is still in use. */
export class ReadBuffer {
  #bytes = Buffer.allocUnsafeSlow(SMALL_BYTES);
  #isInUse = false;
  #isTooSmall = false;

  /** Notes how much was read. */
  noteRead(byteCount: number): void {
    this.#isTooSmall = byteCount === SMALL_BYTES && this.#bytes.length === SMALL_BYTES;
  }

  /** Gives what was read away: the next read goes elsewhere. */
  keep(): void {
    this.#isInUse = true;
  }

  /** Where the next read goes. */
  next(): Buffer {
    if (this.#isTooSmall || this.#isInUse) {
      const size = this.#isTooSmall ? LARGE_BYTES : this.#bytes.length;
      this.#bytes = Buffer.allocUnsafeSlow(size);
      countBuffer(this.#bytes);
      this.#isTooSmall = false;
      this.#isInUse = false;
    }
    return this.#bytes;
  }
}
