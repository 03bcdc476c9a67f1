import { expect, it } from 'vitest';
import { StoreHealth } from '../../../../src/admin/fleet/store-health.ts';
import type { Decision } from '../../../../src/store/store.ts';

it('a store is down once two answers are missing, and up again at the next one', async () => {
  let nowMs = 0;
  let decision: Decision = { outcome: 'admitted', buckets: [], chargedAtUs: 0 };
  const measured: boolean[] = [];
  const health = new StoreHealth({
    store: { peek: async () => decision },
    keyPrefix: 'test',
    nowMs: () => nowMs,
    measured: (isAnswering) => measured.push(isAnswering),
  });
  const after = async (ms: number) => {
    nowMs += ms;
    await health.measure();
    return health.last;
  };
  expect(await after(1_000)).toEqual({ measuredAtMs: 1_000, problem: null });
  decision = { outcome: 'uncounted', reason: 'disconnected' };
  expect(await after(1_000)).toEqual({ measuredAtMs: 2_000, problem: null });
  await after(1_000);
  expect(await after(1_000)).toEqual({ measuredAtMs: 4_000, problem: 'disconnected' });
  decision = { outcome: 'admitted', buckets: [], chargedAtUs: 0 };
  expect(await after(1_000)).toEqual({ measuredAtMs: 5_000, problem: null });
  expect(measured).toEqual([true, true, true, false, true]);
});

it('a store that neither answers nor fails is asked once', async () => {
  let asked = 0;
  const health = new StoreHealth({
    store: {
      peek() {
        asked++;
        return new Promise(() => {});
      },
    },
    keyPrefix: 'test',
    nowMs: () => 0,
    measured: () => expect.fail('nothing was measured'),
  });
  void health.measure();
  void health.measure();
  expect([asked, health.last]).toEqual([1, { measuredAtMs: 0, problem: null }]);
});
