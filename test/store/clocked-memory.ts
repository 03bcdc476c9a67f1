import { MemoryStore } from '../../src/store/memory-store.ts';
import type { ClockedStore } from './conformance.ts';

/** A memory store that takes its time from each call. */
export function clockedMemory(): ClockedStore {
  let nowUs = 0;
  const store = new MemoryStore(() => nowUs);
  return {
    charge(charge, atUs) {
      nowUs = atUs;
      return store.charge(charge);
    },
    settle(settlement, atUs) {
      nowUs = atUs;
      return store.settle(settlement);
    },
    peek(charge, atUs) {
      nowUs = atUs;
      return store.peek(charge);
    },
  };
}
