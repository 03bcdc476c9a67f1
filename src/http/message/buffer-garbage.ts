import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Well below the 32 MiB of buffers at which V8 begins to mark its whole heap, because dead ones count until the next collection. */
const COLLECTED_BYTES = 4 * 1024 * 1024;

/** Node 20 lets more buffers pile up, and an upload costs more there with these collections than without. */
const IS_NEEDED = Number.parseInt(process.versions.node, 10) >= 24;

type CollectGarbage = (options: { readonly type: 'minor' }) => void;

let uncollectedBytes = 0;
let collectGarbage: CollectGarbage | undefined;

/**
 * Counts a buffer outside of V8's heap, and collects V8's young generation after every 4 MiB, on Node 24. Node copies each piece that it
 * reads into such a buffer. Left alone, V8 frees them by collecting its whole heap, many times a second (docs/decisions/0011).
 */
export function countBuffer({ length }: Buffer): void {
  uncollectedBytes += length;
  if (!IS_NEEDED || uncollectedBytes < COLLECTED_BYTES) return;
  uncollectedBytes = 0;
  collectGarbage ??= exposedCollector();
  collectGarbage({ type: 'minor' });
}

/** V8's function `gc`. Only contexts that are made while the flag is set have it. */
function exposedCollector(): CollectGarbage {
  setFlagsFromString('--expose-gc');
  const collector: CollectGarbage = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  return collector;
}
