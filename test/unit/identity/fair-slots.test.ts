import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FairSlots } from '../../../src/identity/provider/fair-slots.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const OPTIONS = { slots: 3, slotsPerHolder: 2, waiting: 5, waitingPerHolder: 3 };

/** Takes a slot and notes the holder once it has one. */
function taker(slots: FairSlots) {
  const granted: string[] = [];
  const refused: string[] = [];
  const take = async (holder: string, waitMs = 1_000) => {
    (await slots.take(holder, waitMs)) ? granted.push(holder) : refused.push(holder);
  };
  return { granted, refused, take };
}

const turn = () => vi.advanceTimersByTimeAsync(0);

it('one holder never gets all slots', async () => {
  const { take, granted, refused } = taker(new FairSlots(OPTIONS));
  for (let count = 0; count < 4; count++) void take('greedy');
  void take('other');
  await turn();
  expect([granted, refused]).toEqual([['greedy', 'greedy', 'other'], []]);
});

it('waiting holders get slots in turn', async () => {
  const slots = new FairSlots(OPTIONS);
  const { take, granted } = taker(slots);
  for (const holder of ['a', 'a', 'b', 'a', 'a', 'b', 'b', 'c']) void take(holder);
  await turn();
  expect(granted).toEqual(['a', 'a', 'b']);
  for (const holder of ['b', 'a', 'c', 'a', 'b']) {
    slots.release(holder);
    await turn();
  }
  expect(granted.slice(3)).toEqual(['b', 'a', 'c', 'b', 'a']);
});

it('the number of waiters is limited, per holder and in total', async () => {
  const { take, refused } = taker(new FairSlots(OPTIONS));
  for (const holder of ['a', 'a', 'b', 'a', 'a', 'a', 'a', 'b', 'b', 'c']) void take(holder);
  await turn();
  expect(refused).toEqual(['a', 'c']);
});

it('a waiter times out after its wait, and then gets no slot', async () => {
  const slots = new FairSlots(OPTIONS);
  const { take, granted, refused } = taker(slots);
  for (const holder of ['a', 'a', 'b']) void take(holder);
  void take('c', 500);
  void take('d', 1_000);
  await vi.advanceTimersByTimeAsync(500);
  expect(refused).toEqual(['c']);
  slots.release('a');
  await turn();
  expect(granted).toEqual(['a', 'a', 'b', 'd']);
  slots.release('a');
  slots.release('b');
  slots.release('d');
  for (const holder of ['e', 'e', 'f']) void take(holder);
  await turn();
  expect(granted.slice(4)).toEqual(['e', 'e', 'f']);
});
