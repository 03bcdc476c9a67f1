import { setFlagsFromString } from 'node:v8';

/** Prevents V8 from allocating objects of requests in the old generation (docs/decisions/0011). Call it before start-up. */
export function allocateYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * Lets V8's young generation grow in one step instead of four after it has shrunk in an idle process. Call it after
 * start-up, whose garbage would otherwise make it grow to its maximum.
 */
export function growAtOnce(): void {
  setFlagsFromString('--semi-space-growth-factor=16');
}

/**
 * Lets V8 collect buffers when the heap's own limit is reached with them, instead of each time that 64 MiB of them were allocated, which
 * makes an upload of 1 MiB cost half as much again. Does nothing but with V8 13, which Node 24 has: earlier versions do not know
 * the flag.
 */
export function countBuffersWithHeap(): void {
  if (process.versions.v8.startsWith('13.'))
    setFlagsFromString('--external-memory-accounted-in-global-limit');
}
