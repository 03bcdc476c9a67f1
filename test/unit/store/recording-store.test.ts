import { expect, test, vi } from 'vitest';
import type { Journal } from '../../../src/store/journal/journal.ts';
import { RecordingStore, RedisClock } from '../../../src/store/journal/recording-store.ts';
import { type Decision, recordedLimit, type Store } from '../../../src/store/store.ts';

const AHEAD_US = 90 * 60_000_000;
const STATE = { remaining: 0, resetAfterUs: 0, retryAfterUs: 1 };
const record = recordedLimit({ scope: 'account', name: 'day', windowSeconds: 86_400 });
const bucket = { key: 'w:1:{a}:day:a', limit: 10, windowSeconds: 86_400, record, owner: 'a' };
const charge = { buckets: [bucket], cost: 4, operation: 'pay' };

test("refusals and added points are recorded in the minute of Redis's clock", () => {
  const redisUs = () => Date.now() * 1_000 + AHEAD_US;
  const decisions: Decision[] = [
    { outcome: 'admitted', buckets: [STATE], chargedAtUs: redisUs() },
    { outcome: 'denied', buckets: [STATE] },
  ];
  const store = {
    charge: () => decisions.shift(),
    settle: () => ({ outcome: 'settled', buckets: [] }),
  } as unknown as Store;
  const add = vi.fn<Journal['add']>();
  const recording = new RecordingStore(store, { add } as unknown as Journal, new RedisClock());
  recording.charge(charge);
  recording.charge(charge);
  recording.settle({ charge, chargedAtUs: undefined, cost: 9, refundsRequests: false, id: 's' });
  const isNow = (atUs: number) => Math.abs(atUs - redisUs()) < 10_000_000;
  expect(add.mock.calls.map(([, , atUs, what, points]) => [what, points, isNow(atUs)])).toEqual([
    ['admitted', 4, true],
    ['refused', 0, true],
    ['settled', 5, true],
  ]);
});
