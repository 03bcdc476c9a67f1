import { expect, test } from 'vitest';
import { type Batch, TurnBatcher } from '../../../src/store/dispatch/turn-batcher.ts';
import type { Charge, Decision } from '../../../src/store/store.ts';

const ADMITTED: Decision = { outcome: 'admitted', buckets: [], chargedAtUs: 0 };

function chargeOf(buckets: number): Charge {
  const keys = Array.from({ length: buckets }, (_, index) => `k${index}`);
  return { buckets: keys.map((key) => ({ key, limit: 1, windowSeconds: 1 })), cost: 1 };
}

test.each([1, 2, 8])(
  'charges of %i buckets share calls of at most 128 buckets, and each is decided',
  async (buckets) => {
    const sizes: number[] = [];
    const send = (batch: Batch) => {
      sizes.push(batch.charges.length);
      batch.settle(batch.charges.map(() => ADMITTED));
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

test('half of a turn goes ahead if everything has been answered, and then two calls stay under way', async () => {
  const batches: Batch[] = [];
  const batcher = new TurnBatcher(
    () => 0,
    (batch) => void batches.push(batch),
    (sendAll) => sendAll(),
  );
  const add = (count: number) => Array.from({ length: count }, () => batcher.add(chargeOf(2)));
  const sizes = () => batches.splice(0).map((batch) => batch.charges.length);
  const answer = (batch: Batch | undefined) => batch?.settle(batch.charges.map(() => ADMITTED));
  add(64);
  batcher.flush();
  answer(batches[0]);
  batches.length = 0;
  add(64);
  batcher.flush();
  const [ahead, rest] = [...batches];
  expect(sizes()).toEqual([32, 32]);
  answer(ahead);
  add(32);
  batcher.flush();
  expect(sizes()).toEqual([32]);
  answer(rest);
  add(32);
  batcher.flush();
  expect(sizes()).toEqual([32]);
});

test('few charges share one call', () => {
  const sizes: number[] = [];
  const batcher = new TurnBatcher(
    () => 0,
    (batch) => {
      sizes.push(batch.charges.length);
      batch.settle(batch.charges.map(() => ADMITTED));
    },
    (sendAll) => sendAll(),
  );
  for (let turn = 0; turn < 3; turn++) {
    for (let index = 0; index < 7; index++) batcher.add(chargeOf(2));
    batcher.flush();
  }
  expect(sizes).toEqual([7, 7, 7]);
});
