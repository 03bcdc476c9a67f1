/** The most of a body, or of one server-sent event, that is kept to be read. */
export const MOST_KEPT = 1_048_576;

/** Most bodies fit. Their memory is used again, because memory that the system has to clear costs 0.5 µs a KiB. */
const SLAB_BYTES = 65_536;
const MOST_SPARE_SLABS = 64;
const spareSlabs: Buffer[] = [];

/** Of all bodies together. */
const MOST_HELD = 64 * MOST_KEPT;
let heldBytes = 0;

/** Bytes of a body in the order in which they came. The memory is bounded, for one body and for all. */
export class CollectedBytes {
  #buffer: Buffer | undefined;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Valid until the next call. */
  get bytes(): Buffer {
    return this.#buffer?.subarray(0, this.#length) ?? NOTHING;
  }

  /** @returns why only those that fit into 1 MiB were added, or none; undefined if all were */
  add(chunk: Buffer): 'too-long' | 'memory' | undefined {
    const length = Math.min(MOST_KEPT, this.#length + chunk.length);
    if (length > (this.#buffer?.length ?? 0) && !this.#grow(length)) return 'memory';
    const added = chunk.copy(this.#buffer ?? NOTHING, this.#length);
    this.#length = length;
    return added < chunk.length ? 'too-long' : undefined;
  }

  /** Frees the memory. */
  release(): void {
    const buffer = this.#buffer;
    this.#buffer = undefined;
    this.#length = 0;
    if (buffer === undefined) return;
    heldBytes -= buffer.length;
    if (buffer.length === SLAB_BYTES && spareSlabs.length < MOST_SPARE_SLABS) spareSlabs.push(buffer);
  }

  #grow(length: number): boolean {
    const size = Math.max(SLAB_BYTES, 2 ** Math.ceil(Math.log2(length)));
    if (heldBytes + size > MOST_HELD) return false;
    const spare = size === SLAB_BYTES ? spareSlabs.pop() : undefined;
    const grown = spare ?? Buffer.allocUnsafeSlow(size);
    const kept = this.#length;
    this.bytes.copy(grown);
    this.release();
    heldBytes += size;
    this.#buffer = grown;
    this.#length = kept;
    return true;
  }
}

const NOTHING = Buffer.alloc(0);
