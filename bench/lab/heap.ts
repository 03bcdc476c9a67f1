import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Options of V8: each collection writes a line to standard output that says how much was allocated since the one before. */
export const TRACE_ALLOCATIONS = ['--trace-gc', '--trace-gc-nvp'];

/** Sums what a process that was started with TRACE_ALLOCATIONS has allocated on its heap. */
export class Allocations {
  /** Up to its last collection. */
  bytes = 0;
  /** What was moved to the old generation, because it survived. */
  promotedBytes = 0;
  #rest = '';

  /** Takes what it has written. */
  take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      this.bytes += Number(/ allocated=(\d+)/.exec(line)?.[1] ?? 0);
      this.promotedBytes += Number(/ promoted=(\d+)/.exec(line)?.[1] ?? 0);
    }
  }
}

/** Collects all garbage of this process, so that what it holds can be measured. */
export function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect();
}
