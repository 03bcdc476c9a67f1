import { expect, test } from 'vitest';
import { MemoryStore, SweptLogs } from '../../src/store/memory-store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { clockedMemory } from './clocked-memory.ts';
import { testsOfConformance } from './conformance.ts';
import { leastUsefulBursts, leastUsefulGroups } from './least-useful.ts';
import { testsOfUsefulness } from './usefulness.ts';

const open = async () => ({ store: clockedMemory(), prefix: 'm' });
testsOfConformance(open);
testsOfUsefulness(open, 1000);

test('the worst pattern that a search finds gets the guaranteed share', async () => {
  for (const [find, tries] of [
    [leastUsefulBursts, 1000],
    [leastUsefulGroups, 300],
  ] as const) {
    const { pattern, share } = await find(generatedCases(tries), 20_261_121);
    expect(share, JSON.stringify(pattern)).toBeGreaterThanOrEqual(0.98);
  }
});

test('the guaranteed share is not much lower than it has to be: a pattern made by hand nearly gets no more', async () => {
  const { share } = await leastUsefulGroups(3, 1);
  expect(share).toBeLessThan(0.982);
});

test('it has at most twice the buckets of a window', async () => {
  let nowUs = 0;
  const logs = new SweptLogs();
  const store = new MemoryStore(() => nowUs, logs);
  for (let id = 0; id < 50_000; id++) {
    nowUs += 100;
    await store.charge({ buckets: [{ key: `k${id}`, limit: 5, windowSeconds: 1 }], cost: 1 });
  }
  expect(logs.size).toBeLessThanOrEqual(20_001);
});

test('a bucket that is swept while it is charged loses nothing', async () => {
  let nowUs = 0;
  const store = new MemoryStore(() => nowUs);
  const charge = { buckets: [{ key: 'k', limit: 1, windowSeconds: 1 }], cost: 1 };
  for (let window = 0; window < 10; window++) {
    expect(store.charge(charge).outcome).toBe('admitted');
    expect(store.charge(charge).outcome).toBe('denied');
    nowUs += 1_000_000;
  }
});

test('a window that is raised keeps what still counts, in full buckets too, and a lowered one drops it', () => {
  let nowUs = 0;
  const logs = new SweptLogs();
  const store = new MemoryStore(() => nowUs, logs);
  const charge = (windowSeconds: number, cost: number) =>
    store.charge({ buckets: [{ key: 'k', limit: 20, windowSeconds }], cost }).outcome;
  const sweep = () => {
    for (let id = 0; id < 10; id++) {
      store.charge({ buckets: [{ key: `other${id}`, limit: 5, windowSeconds: 1 }], cost: 1 });
    }
  };
  expect(charge(1, 20)).toBe('admitted');
  nowUs += 900_000;
  expect(charge(60, 1)).toBe('denied');
  nowUs += 900_000;
  sweep();
  expect(charge(60, 1)).toBe('denied');
  nowUs += 58_200_000;
  expect(charge(60, 19)).toBe('admitted');
  nowUs += 1_000_000;
  expect(charge(1, 20)).toBe('admitted');
  nowUs += 1_000_000;
  sweep();
  expect(logs.size).toBeLessThanOrEqual(11);
});

test('a closed store counts nothing and reports it', async () => {
  const store = new MemoryStore();
  await store.close();
  const charge = { buckets: [{ key: 'k', limit: 5, windowSeconds: 1 }], cost: 1 };
  expect(await store.charge(charge)).toEqual({ outcome: 'uncounted', reason: 'closed' });
});
