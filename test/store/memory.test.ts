import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { clockedMemory } from './clocked-memory.ts';
import { testsOfConformance } from './conformance.ts';
import { leastUseful } from './least-useful.ts';
import { testsOfUsefulness } from './usefulness.ts';

const open = async () => ({ store: clockedMemory(), prefix: 'm' });
testsOfConformance(open);
testsOfUsefulness(open, 1000);

test('the worst pattern that a search finds gets the guaranteed share', async () => {
  const { bursts, share } = await leastUseful(1000, 20_261_121);
  expect(share, JSON.stringify(bursts)).toBeGreaterThanOrEqual(0.98);
});

test('it has at most twice the buckets of a window', async () => {
  let nowUs = 0;
  const store = new MemoryStore(() => nowUs);
  for (let id = 0; id < 50_000; id++) {
    nowUs += 100;
    await store.charge({ buckets: [{ key: `k${id}`, limit: 5 }], cost: 1, windowSeconds: 1 });
  }
  expect(store.size).toBeLessThanOrEqual(20_001);
});

test('a bucket that is swept while it is charged loses nothing', async () => {
  let nowUs = 0;
  const store = new MemoryStore(() => nowUs);
  const charge = { buckets: [{ key: 'k', limit: 1 }], cost: 1, windowSeconds: 1 };
  for (let window = 0; window < 10; window++) {
    expect(store.charge(charge).outcome).toBe('admitted');
    expect(store.charge(charge).outcome).toBe('denied');
    nowUs += 1_000_000;
  }
});

test('a closed store counts nothing and reports it', async () => {
  const store = new MemoryStore();
  await store.close();
  const charge = { buckets: [{ key: 'k', limit: 5 }], cost: 1, windowSeconds: 1 };
  expect(await store.charge(charge)).toEqual({ outcome: 'uncounted', reason: 'closed' });
});
