import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { shareSlots, type WaitingSubscription } from '../../src/deliveries/shares.ts';

const CONCURRENCY = 256;

/** As of subscriptions whose endpoints have answered until now. */
const windowOf = () => CONCURRENCY;

/** What each holds when everyone wants more than there is, and nobody ever gives anything back. */
function fill(waiting: readonly WaitingSubscription[]): Map<string, number> {
  const held = new Map<string, number>();
  let total = 0;
  for (let given = -1; given !== 0; ) {
    const before = total;
    const ofFailing = heldByFailing(waiting, held);
    const slots = shareSlots(
      waiting,
      { total, ofFailing, of: (id) => held.get(id) ?? 0, windowOf },
      CONCURRENCY,
    );
    for (const { id, owner } of waiting) {
      const more = slots.get(id) ?? 0;
      held.set(id, (held.get(id) ?? 0) + more);
      held.set(owner, (held.get(owner) ?? 0) + more);
      total += more;
    }
    given = total - before;
  }
  return held;
}

function heldByFailing(waiting: readonly WaitingSubscription[], held: ReadonlyMap<string, number>): number {
  return waiting.reduce((sum, { id, isFailing }) => sum + (isFailing ? (held.get(id) ?? 0) : 0), 0);
}

const subscription = (id: number, owner = id) => ({
  id: `sub_${id}`,
  owner: `acct_${owner}`,
  isProbe: false,
  isFailing: false,
});

describe('the slots of the delivery worker', () => {
  test('one endpoint that never answers uses at most an eighth', () => {
    expect(fill([subscription(1)]).get('sub_1')).toBeLessThanOrEqual(CONCURRENCY / 8);
  });

  test('an owner with a thousand such endpoints leaves a quarter', () => {
    const many = Array.from({ length: 1000 }, (_, index) => subscription(index, 1));
    expect(fill(many).get('acct_1')).toBeLessThanOrEqual((CONCURRENCY * 3) / 4);
  });

  test('a hundred owners with such an endpoint leave slots for another one', () => {
    const held = fill(Array.from({ length: 100 }, (_, index) => subscription(index)));
    const total = Array.from({ length: 100 }, (_, index) => held.get(`sub_${index}`) ?? 0).reduce(
      (a, b) => a + b,
    );
    expect(total).toBeLessThan(CONCURRENCY);
  });

  test('forty-nine endpoints of one owner that have never answered leave the fiftieth its whole share', () => {
    const silent = Array.from({ length: 49 }, (_, index) => subscription(index, 1));
    const held = new Map(silent.map(({ id }) => [id, 1]));
    const of = (id: string) => (id === 'acct_1' ? silent.length : (held.get(id) ?? 0));
    const healthy = { ...subscription(50, 1) };
    const windows = (id: string) => (id === healthy.id ? CONCURRENCY : 1);
    const waiting = [...silent, healthy];
    const slots = shareSlots(
      waiting,
      { total: silent.length, ofFailing: 0, of, windowOf: windows },
      CONCURRENCY,
    );
    expect([...slots.keys()]).toEqual([healthy.id]);
    expect(slots.get(healthy.id)).toBeGreaterThan(CONCURRENCY / 16);
  });

  test.each([false, true])(
    'five thousand owners whose endpoints fail leave a quarter, and another one gets its slots at once; probes: %s',
    (isProbe) => {
      const dead = Array.from({ length: 5000 }, (_, index) => ({
        ...subscription(index),
        isProbe,
        isFailing: true,
      }));
      const held = fill(dead);
      const total = dead.reduce((sum, { id }) => sum + (held.get(id) ?? 0), 0);
      expect(total).toBeLessThanOrEqual((CONCURRENCY * 3) / 4);
      expect(total).toBeGreaterThan(CONCURRENCY / 2);
      const healthy = subscription(5000);
      const of = (id: string) => held.get(id) ?? 0;
      const slots = shareSlots([...dead, healthy], { total, ofFailing: total, of, windowOf }, CONCURRENCY);
      expect([...slots.keys()]).toEqual([healthy.id]);
      expect(slots.get(healthy.id)).toBeGreaterThan(1);
    },
  );

  test.each([false, true])(
    'while healthy endpoints take every slot that is free, one that failed is tried again at once; probes: %s',
    (isProbe) => {
      const healthy = Array.from({ length: 1000 }, (_, index) => subscription(index));
      const failed = { ...subscription(1000), isProbe, isFailing: true };
      const total = CONCURRENCY - 1;
      const underWay = { total, ofFailing: 0, of: () => 0, windowOf };
      expect([...shareSlots([...healthy, failed], underWay, CONCURRENCY)]).toEqual([[failed.id, 1]]);
    },
  );

  test.each([0, 10, CONCURRENCY / 8, CONCURRENCY / 2])(
    'five thousand owners whose endpoints fail go before healthy ones up to an eighth of the slots; they have %d',
    (ofFailing) => {
      const dead = Array.from({ length: 5000 }, (_, index) => ({ ...subscription(index), isFailing: true }));
      const healthy = subscription(5000);
      const total = CONCURRENCY - CONCURRENCY / 4;
      const underWay = { total, ofFailing, of: () => 0, windowOf };
      const slots = shareSlots([...dead, healthy], underWay, CONCURRENCY);
      const before = Math.max(0, CONCURRENCY / 8 - ofFailing);
      expect([...slots.keys()]).toEqual([...dead.slice(0, before).map(({ id }) => id), healthy.id]);
      expect(new Set(dead.map(({ id }) => slots.get(id) ?? 0))).toEqual(new Set(before > 0 ? [1, 0] : [0]));
    },
  );

  test('a failing endpoint that does not answer gets no second slot before the healthy ones', () => {
    const failed = { ...subscription(0), isFailing: true };
    const of = (id: string) => (id === failed.id || id === failed.owner ? 1 : 0);
    const underWay = { total: CONCURRENCY - 1, ofFailing: 1, of, windowOf };
    expect([...shareSlots([failed, subscription(1)], underWay, CONCURRENCY).keys()]).toEqual(['sub_1']);
  });

  test('a probe starts one delivery', () => {
    const slots = shareSlots(
      [{ ...subscription(1), isProbe: true }],
      { total: 0, ofFailing: 0, of: () => 0, windowOf },
      CONCURRENCY,
    );
    expect(slots.get('sub_1')).toBe(1);
  });

  test('never more than are free, and each below its share gets one before any gets a second', () => {
    const waiting = fc.array(
      fc.record({ id: fc.integer({ max: 99, min: 0 }), owner: fc.integer({ max: 9, min: 0 }) }),
      { maxLength: 100, size: 'max' },
    );
    fc.assert(
      fc.property(waiting, fc.integer({ min: 0, max: CONCURRENCY }), (entries, total) => {
        const subscriptions = [
          ...new Map(entries.map(({ id, owner }) => [id, subscription(id, owner)])).values(),
        ];
        const slots = shareSlots(subscriptions, { total, ofFailing: 0, of: () => 0, windowOf }, CONCURRENCY);
        const sum = [...slots.values()].reduce((a, b) => a + b, 0);
        expect(sum).toBeLessThanOrEqual(CONCURRENCY - total);
        if (subscriptions.length > 0 && total < CONCURRENCY) expect(sum).toBeGreaterThan(0);
        if (sum === slots.size) return;
        // Somebody got a second slot, so who got none is of an owner that had its share after the first turn.
        const ofOwner = (owner: string) =>
          subscriptions.filter((one) => one.owner === owner && slots.has(one.id));
        const share = Math.max(1, Math.floor((CONCURRENCY - total - slots.size) / 2));
        for (const { owner } of subscriptions.filter(({ id }) => !slots.has(id)))
          expect(ofOwner(owner).length).toBeGreaterThanOrEqual(share);
      }),
    );
  });
});
