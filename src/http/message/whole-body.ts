import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Refusal } from '../../domain/problems.ts';

/** Ends a body that cannot be read to its end, with the answer for its client. */
export class BodyError extends Error {
  readonly refusal: Refusal;

  /** @param name for the log */
  constructor(name: 'BodyTooLongError' | 'BrokenBodyError', refusal: Refusal) {
    super(refusal.detail);
    this.name = name;
    this.refusal = refusal;
  }
}

/** A body that turned out longer than allowed. */
export function bodyTooLong(maxBytes: number): BodyError {
  return new BodyError(
    'BodyTooLongError',
    new Refusal('PayloadTooLarge', `A request body may have ${maxBytes} bytes at most.`, { closes: true }),
  );
}

/** A body whose rest will not arrive. */
export function brokenBody(refusal: Refusal): BodyError {
  return new BodyError('BrokenBodyError', refusal);
}

/** The refusal of a body that has to be in memory, and is too long for that. */
export function wholeBodyTooLong(maxBytes: number): Refusal {
  return new Refusal('PayloadTooLarge', `The body of this operation may have ${maxBytes} bytes at most.`, {
    closes: true,
  });
}

const BROKE_OFF = new Refusal('BadRequest', 'The request was aborted.', { closes: true });

/**
 * Reads a body to its end.
 *
 * @param body such as `Exchange.readBody` returns
 * @param tooLong the refusal of a body that is longer than allowed
 * @param length its length, if it is known
 */
export async function readWhole(
  body: Readable,
  tooLong: Refusal,
  length?: number,
): Promise<Buffer | Refusal> {
  const collected = new CollectedBytes(length);
  return (await collect(collected, body, tooLong)) ?? collected.bytes;
}

/**
 * Reads a body of known length to its end, and returns the pieces of it. Copying 64 KiB takes about as long as sending it.
 *
 * @param body such as `Exchange.readBody` returns
 * @param tooLong the refusal of a body that is longer than allowed
 */
export async function readPieces(
  body: Readable,
  tooLong: Refusal,
  length: number,
): Promise<readonly Buffer[] | Refusal> {
  const pieces = new Pieces(length);
  return (await collect(pieces, body, tooLong)) ?? pieces.list;
}

/** @returns why the rest will not arrive; undefined if all is there */
async function collect(
  target: CollectedBytes | Pieces,
  body: Readable,
  tooLong: Refusal,
): Promise<Refusal | undefined> {
  try {
    // An iterator would join what has arrived.
    body.on('data', (chunk: Buffer) => target.add(chunk));
    await finished(body, { writable: false });
    return undefined;
  } catch (error) {
    const refusal = brokenBy(error);
    return refusal.code === 'PayloadTooLarge' ? tooLong : refusal;
  }
}

/**
 * Waits for the beginning of a body, which stays in its stream.
 *
 * @param body such as `Exchange.readBody` returns, and longer than that
 * @returns undefined once the beginning is there; otherwise why it will not arrive
 */
export async function awaitBeginning(body: Readable, length: number): Promise<Refusal | undefined> {
  await arrival(body, length);
  return body.destroyed ? brokenBy(body.errored) : undefined;
}

/** Waits until so many bytes are in the stream, or it closes. */
function arrival(body: Readable, length: number): Promise<void> {
  return new Promise((resolve) => {
    const beginning = new Pieces(length);
    const onReadable = () => {
      if (beginning.length + body.readableLength < length) {
        const piece = body.read() as Buffer | null;
        if (piece !== null) beginning.add(piece);
        return;
      }
      body.off('readable', onReadable).off('close', resolve);
      for (const piece of beginning.list.toReversed()) body.unshift(piece);
      resolve();
    };
    // Why it broke is read when it has closed.
    body
      .on('readable', onReadable)
      .on('close', resolve)
      .on('error', () => {});
  });
}

function brokenBy(error: unknown): Refusal {
  return error instanceof BodyError ? error.refusal : BROKE_OFF;
}

/** More than these are joined. */
const KEPT_PIECES = 4;

/** Chunks as they arrived. Those behind the first few are joined, so that a body that arrives octet by octet stays small in memory. */
class Pieces {
  readonly #first: Buffer[] = [];
  readonly #length: number;
  #joined: CollectedBytes | undefined;
  length = 0;

  /** @param length of all */
  constructor(length: number) {
    this.#length = length;
  }

  add(chunk: Buffer): void {
    if (this.#first.length < KEPT_PIECES) this.#first.push(chunk);
    else {
      this.#joined ??= new CollectedBytes(this.#length - this.length);
      this.#joined.add(chunk);
    }
    this.length += chunk.length;
  }

  get list(): readonly Buffer[] {
    return this.#joined === undefined ? this.#first : [...this.#first, this.#joined.bytes];
  }
}

const FIRST_BYTES = 1_024;

/** Copies chunks into one buffer, because a chunk of one octet keeps a hundred times its length in memory. */
class CollectedBytes {
  readonly #expected: number;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  constructor(expected = Number.POSITIVE_INFINITY) {
    this.#expected = expected;
  }

  add(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed === this.#expected && this.#length === 0) this.#buffer = chunk;
    else {
      if (needed > this.#buffer.length) this.#grow(needed);
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = needed;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const size = Math.max(needed, Math.min(this.#expected, Math.max(FIRST_BYTES, 2 * needed)));
    const larger = Buffer.allocUnsafeSlow(size);
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }
}
