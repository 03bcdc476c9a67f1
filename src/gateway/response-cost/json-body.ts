import type { JsonPointer } from '../../domain/settlement/json-pointer.ts';
import type { Reading, UnsettledReason } from '../../domain/settlement/settlement.ts';
import { CollectedBytes } from './collected-bytes.ts';
import { pointsForwards } from './forward-reader.ts';
import type { FoundPoints } from './json-bytes.ts';
import { keyScan } from './key-scan.ts';
import { pointsIn, pointsInParsed } from './member.ts';

/** Why the rest of a body is not read. */
export type StoppedBy = UnsettledReason | 'found';

/** Reads the points in a body whose content coding has been removed. */
export interface BodyReader {
  /**
   * @param isWhole whether it is the whole body
   * @returns why the rest is not read; undefined if it is
   */
  add(chunk: Buffer, isWhole: boolean): StoppedBy | undefined;
  /**
   * Frees the memory: nothing can be added.
   *
   * @param isWhole whether the body has ended
   */
  end(isWhole: boolean): Reading;
}

/** Reads one JSON text, or the last of several that follow each other. Of a body that is longer than 1 MiB, it reads the beginning. */
export class JsonBody implements BodyReader {
  readonly #pointer: JsonPointer;
  readonly #collected = new CollectedBytes();
  #found: FoundPoints | undefined;
  #problem: UnsettledReason | undefined;

  constructor(pointer: JsonPointer) {
    this.#pointer = pointer;
  }

  add(chunk: Buffer, isWhole: boolean): StoppedBy | undefined {
    if (isWhole) this.#found = pointsIn(chunk, this.#pointer);
    else if (this.#found === undefined && this.#problem === undefined) this.#collect(chunk);
    return this.#found === undefined ? this.#problem : 'found';
  }

  #collect(chunk: Buffer): void {
    const problem = this.#collected.add(chunk);
    if (problem === undefined) return;
    const { bytes } = this.#collected;
    const found =
      problem === 'too-long' ? pointsForwards(bytes, this.#pointer, keyScan(), 'unread') : undefined;
    this.#collected.release();
    if (found === undefined || found === 'missing') this.#problem = problem;
    else this.#found = found;
  }

  end(isWhole: boolean): Reading {
    const { bytes } = this.#collected;
    const pointer = this.#pointer;
    const found = this.#found ?? (isWhole ? pointsIn(bytes, pointer) : pointsUntilHere(bytes, pointer));
    this.#collected.release();
    return readingOf(found, this.#problem);
  }
}

/** What a text has stated that breaks off. */
function pointsUntilHere(text: Buffer, pointer: JsonPointer): FoundPoints {
  const found = pointer.hasIndex ? undefined : pointsForwards(text, pointer, keyScan(), 'unsent');
  return found ?? pointsInParsed(text.toString(), pointer);
}

/** @param problem why not everything was read */
export function readingOf(found: FoundPoints, problem: UnsettledReason | undefined): Reading {
  if (typeof found === 'number') return { points: found, problem };
  return { points: undefined, problem: problem ?? found };
}
