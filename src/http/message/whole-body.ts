import type { Readable } from 'node:stream';
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
 */
export async function readWhole(body: Readable, tooLong: Refusal): Promise<Buffer | Refusal> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of body) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  } catch (error) {
    if (!(error instanceof BodyError)) return BROKE_OFF;
    return error.refusal.code === 'PayloadTooLarge' ? tooLong : error.refusal;
  }
}
