import { expect, test } from 'vitest';
import { calendarOf } from '../../../src/domain/limits/calendar.ts';
import { RequestContext } from '../../../src/stages/request-context.ts';
import { refund, settle } from '../../../src/stages/settle.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { Charge } from '../../../src/store/store.ts';

const charge: Charge = {
  buckets: [
    { key: 'w:1:{a}:tokens:a', limit: 100, windowSeconds: 60 },
    { key: 'w:1:{a}:requests:a', limit: 10, windowSeconds: 60, counts: 'requests' },
  ],
  cost: 40,
};

function charged(isPeek = false) {
  const store = new MemoryStore();
  const source = { isPeek, field: () => undefined, valuesOf: () => [] };
  const request = new RequestContext(source, 'POST', '/v1/chat');
  request.decision = store.charge(charge);
  request.asked = charge;
  const left = async () => {
    const decision = await store.peek({ ...charge, cost: 1 });
    return decision.outcome === 'uncounted' ? [] : decision.buckets.map((state) => state?.remaining);
  };
  return { store, request, left };
}

test('a settled request has its final cost, and still counts as a request', async () => {
  const { store, request, left } = charged();
  settle(request, store, 15);
  expect(await left()).toEqual([85, 9]);
  expect(request.settledCost).toBe(15);
});

test('a refunded request has cost nothing, also where requests are counted', async () => {
  const { store, request, left } = charged();
  refund(request, store);
  expect(await left()).toEqual([100, 10]);
});

test('a request that a shadow limit had no room for changes nothing there', async () => {
  const store = new MemoryStore();
  const calendar = calendarOf({ unit: 'year', timeZone: 'UTC', startsOn: 1 });
  const shadows = [
    { key: 'w:1:{a}:tried.p:a', limit: 60, windowSeconds: 60, shadow: true, calendar },
    { key: 'w:1:{a}:tried-requests:a', limit: 1, windowSeconds: 60, counts: 'requests', shadow: true },
  ] as const;
  const request = () => {
    const context = new RequestContext(
      { isPeek: false, field: () => undefined, valuesOf: () => [] },
      'POST',
      '/v1/chat',
    );
    context.asked = { ...charge, buckets: [...charge.buckets, ...shadows] };
    context.decision = store.charge(context.asked);
    return context;
  };
  const left = async () => {
    const decision = await store.peek({ buckets: shadows, cost: 1 });
    return decision.outcome === 'uncounted' ? [] : decision.buckets.map((state) => state?.remaining);
  };
  request();
  expect(await left()).toEqual([20, 0]);
  refund(request(), store);
  expect(await left()).toEqual([20, 0]);
  settle(request(), store, 90);
  expect(await left()).toEqual([20, 0]);
});

test('only the first settlement of a request is applied', async () => {
  const { store, request, left } = charged();
  settle(request, store, 15);
  refund(request, store);
  settle(request, store, 90);
  expect(await left()).toEqual([85, 9]);
});

test('what was not charged is not settled', async () => {
  const { store, request, left } = charged();
  request.decision = { outcome: 'uncounted', reason: 'deadline' };
  refund(request, store);
  expect(await left()).toEqual([60, 9]);
  const peeked = charged(true);
  refund(peeked.request, peeked.store);
  expect(await peeked.left()).toEqual([60, 9]);
});
