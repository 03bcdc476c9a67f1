/** Flags of V8 hold for a whole process, so only the programs that run one gateway set them, and not the gateway itself. */
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
