/** Flags of V8 hold for a whole process, so only the programs that run one gateway set them, and not the gateway itself. */
import { setFlagsFromString } from 'node:v8';

/** Node 20 has no such flag. */
const CAN_KEEP_LIMITS = Number.parseInt(process.versions.node, 10) >= 24;

/**
 * Prevents V8 from allocating objects of requests in the old generation (docs/decisions/0011), and its young generation from growing
 * with the garbage of start-up: V8 would keep that memory. After a rest, V8 would also let the heap grow so little that it collected all of it
 * several times a second during uploads, and on Node 24 it would lower the heap's limits in an idle process. Call it before start-up.
 */
export function allocateYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=200');
  if (CAN_KEEP_LIMITS) setFlagsFromString('--no-memory-reducer-favors-memory');
}

/** Start-up has left no more garbage after this time. */
const SETTLED_MS = 2_000;

/** Calls `growAtOnce` when start-up has settled. Call it after start-up. */
export function growOnceSettled(): void {
  setTimeout(growAtOnce, SETTLED_MS).unref();
}

/** Lets V8's young generation grow in one step instead of four after it has shrunk in an idle process. */
export function growAtOnce(): void {
  setFlagsFromString('--semi-space-growth-factor=16');
}
