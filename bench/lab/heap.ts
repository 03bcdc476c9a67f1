import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Options of V8: each collection writes a line to standard output with the size of the heap before and after it. */
export const TRACE_ALLOCATIONS = ['--trace-gc', '--trace-gc-nvp'];

/** The names of Node 20, and of Node 24. */
const SIZE_BEFORE = / (?:total_size_before|start_object_size)=(\d+)/;
const SIZE_AFTER = / (?:total_size_after|end_object_size)=(\d+)/;
const PROMOTED = / promoted=(\d+)/;

/** Sums what a process that was started with TRACE_ALLOCATIONS has allocated on its heap. */
export class Allocations {
  /** Up to its last collection. */
  bytes = 0;
  /** What was moved to the old generation, because it survived. */
  promotedBytes = 0;
  #sizeAfterLast = 0;
  #rest = '';

  /** Takes what it has written. */
  take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const sizeBefore = figureOf(line, SIZE_BEFORE);
      const sizeAfter = figureOf(line, SIZE_AFTER);
      // Lines of other kinds have neither.
      if (sizeBefore === undefined || sizeAfter === undefined) continue;
      // Not V8's own `allocated`: for a collection of young objects while a full one is in progress, it is the size of the whole heap.
      this.bytes += sizeBefore - this.#sizeAfterLast;
      this.#sizeAfterLast = sizeAfter;
      this.promotedBytes += figureOf(line, PROMOTED) ?? 0;
    }
  }
}

function figureOf(line: string, pattern: RegExp): number | undefined {
  const digits = pattern.exec(line)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Collects all garbage of this process, so that what it holds can be measured. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect();
}
