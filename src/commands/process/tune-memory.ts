import { setFlagsFromString } from 'node:v8';

/** Keeps V8 from allocating objects of requests among the old ones (docs/decisions/0011). To be called before start-up. */
export function allocateYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/**
 * Lets V8's young generation grow in one step instead of four, after it has shrunk in an idle process. To be called after
 * start-up, whose garbage would make it grow as far as it can.
 */
export function growAtOnce(): void {
  setFlagsFromString('--semi-space-growth-factor=16');
}
