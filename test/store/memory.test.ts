import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { type ClockedStore, testsOfConformance } from './conformance.ts';

testsOfConformance(async () => ({ store: clockedMemory(), prefix: 'm' }));

function clockedMemory(): ClockedStore {
  let nowUs = 0;
  const store = new MemoryStore(() => nowUs);
  return {
    charge(charge, atUs) {
      nowUs = atUs;
      return store.charge(charge);
    },
    peek(charge, atUs) {
      nowUs = atUs;
      return store.peek(charge);
    },
  };
}

test('memory is bounded by the buckets of the last two windows', async () => {
  let nowUs = 0;
  const store = new MemoryStore(() => nowUs);
  for (let id = 0; id < 50_000; id++) {
    nowUs += 100;
    await store.charge({ buckets: [{ key: `k${id}`, limit: 5 }], cost: 1, windowSeconds: 1 });
  }
  expect(store.size).toBeLessThanOrEqual(20_001);
});

test('a closed store counts nothing and says so', async () => {
  const store = new MemoryStore();
  await store.close();
  const charge = { buckets: [{ key: 'k', limit: 5 }], cost: 1, windowSeconds: 1 };
  expect(await store.charge(charge)).toEqual({ outcome: 'uncounted', reason: 'closed' });
});
