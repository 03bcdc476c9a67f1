import { expect, test } from 'vitest';
import { type Batch, TurnBatcher } from '../../../src/store/dispatch/turn-batcher.ts';
import type { Charge, Decision } from '../../../src/store/store.ts';

function chargeOf(buckets: number): Charge {
  const keys = Array.from({ length: buckets }, (_, index) => `k${index}`);
  return { buckets: keys.map((key) => ({ key, limit: 1, windowSeconds: 1 })), cost: 1 };
}

test.each([1, 2, 8])(
  'charges of %i buckets share calls of at most 128 buckets, and each is decided',
  async (buckets) => {
    const sizes: number[] = [];
    const admitted: Decision = { outcome: 'admitted', buckets: [], chargedAtUs: 0 };
    const send = (batch: Batch) => {
      sizes.push(batch.charges.length);
      batch.settle(batch.charges.map(() => admitted));
    };
    const batcher = new TurnBatcher(
      () => 0,
      send,
      (sendAll) => sendAll(),
    );
    const decided = Array.from({ length: 300 }, () => batcher.add(chargeOf(buckets)));
    expect(await Promise.all(decided)).toHaveLength(300);
    expect(Math.max(...sizes)).toBe(128 / buckets);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(300);
  },
);
