import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import type { Reading, UnsettledReason } from '../../domain/settlement/settlement.ts';
import { CollectedBytes } from './collected-bytes.ts';
import type { FoundPoints } from './json-bytes.ts';
import { pointsIn } from './member.ts';

/** Reads the points in a body whose content coding has been removed. */
export interface BodyReader {
  /**
   * @param isWhole whether it is the whole body
   * @returns why the rest is not read; undefined if it is
   */
  add(chunk: Buffer, isWhole: boolean): UnsettledReason | undefined;
  /**
   * Frees the memory: nothing can be added.
   *
   * @param isWhole whether the body has ended
   */
  end(isWhole: boolean): Reading;
}

/** Reads one JSON text, or the last of several that follow each other. */
export class JsonBody implements BodyReader {
  readonly #pointer: JsonPointer;
  readonly #collected = new CollectedBytes();
  #found: FoundPoints | undefined;
  #problem: UnsettledReason | undefined;

  constructor(pointer: JsonPointer) {
    this.#pointer = pointer;
  }

  add(chunk: Buffer, isWhole: boolean): UnsettledReason | undefined {
    if (this.#problem !== undefined) return this.#problem;
    if (isWhole) this.#found = pointsIn(chunk, this.#pointer);
    else this.#problem = this.#collected.add(chunk);
    if (this.#problem !== undefined) this.#collected.release();
    return this.#problem;
  }

  end(isWhole: boolean): Reading {
    const found = this.#found ?? (isWhole ? pointsIn(this.#collected.bytes, this.#pointer) : 'missing');
    this.#collected.release();
    return readingOf(found, this.#problem);
  }
}

/** @param problem why not everything was read */
export function readingOf(found: FoundPoints, problem: UnsettledReason | undefined): Reading {
  if (typeof found === 'number') return { points: found, problem };
  return { points: undefined, problem: problem ?? found };
}
