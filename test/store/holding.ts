/** What every store guarantees about slots that are held for a time, for decisions that a program settles later. */
import { expect, test } from 'vitest';
import { bucketKey, SLOTS_ENDING } from '../../src/store/keys.ts';
import type { BucketCharge, Charge } from '../../src/store/store.ts';
import type { ClockedStore } from './conformance.ts';

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;
let ids = 0;

export function testsOfHolding(open: () => Promise<{ store: ClockedStore; prefix: string }>): void {
  const opened = async (limit: number, more: readonly Partial<BucketCharge>[] = []) => {
    const { store, prefix } = await open();
    const owner = `${ids++}`;
    const slots: BucketCharge = {
      key: bucketKey(prefix, 'org', `in-flight${SLOTS_ENDING}`, owner),
      limit,
      windowSeconds: 0,
      counts: 'concurrent',
    };
    const others = more.map((changes, index) => ({
      key: bucketKey(prefix, 'org', `tokens${index}`, owner),
      limit: 100,
      windowSeconds: 10,
      ...changes,
    }));
    const at = (afterS: number) => START_US + Math.round(afterS * US_PER_SECOND);
    const hold = async (heldMs: number, afterS: number, cost = 1) => {
      const charge: Charge = { buckets: [...others, slots], cost, heldMs };
      const decision = await store.charge(charge, at(afterS));
      if (decision.outcome !== 'admitted') return undefined;
      const { chargedAtUs } = decision;
      return { charge, chargedAtUs, refundsRequests: false, endsAtUs: chargedAtUs + heldMs * 1_000 };
    };
    const held = async (heldMs: number, afterS: number, cost?: number) => {
      const made = await hold(heldMs, afterS, cost);
      if (made === undefined) throw new Error('denied');
      return made;
    };
    const settle = (
      made: Awaited<ReturnType<typeof held>>,
      cost: number,
      afterS: number,
      id = `h-${ids++}`,
    ) => store.settle({ ...made, cost, id }, at(afterS));
    const free = async (afterS: number, buckets: readonly BucketCharge[] = [slots]) => {
      const decision = await store.peek({ buckets, cost: 1 }, at(afterS));
      if (decision.outcome === 'uncounted') throw new Error(decision.reason);
      return decision.buckets.map((state) => state?.remaining);
    };
    return { hold, held, settle, free, others };
  };

  test('a held charge takes its slot until it is settled, and then another one may have it', async () => {
    const { hold, held, settle, free } = await opened(2);
    const first = await held(60_000, 0);
    await held(60_000, 1);
    expect(await hold(60_000, 2)).toBeUndefined();
    await settle(first, 1, 3);
    expect(await free(3)).toEqual([1]);
    expect(await hold(60_000, 4)).toBeDefined();
    expect(await hold(60_000, 5)).toBeUndefined();
  });

  test('a slot is freed once, however often its settlement is sent', async () => {
    const { held, settle, free } = await opened(5);
    // All three end in the same second, so their slots share a lease.
    const [first] = [await held(60_000, 0.1), await held(60_000, 0.2), await held(60_000, 0.3)];
    for (let sent = 0; sent < 3; sent++) await settle(first, 0, 1, 'the-same');
    expect(await free(1)).toEqual([3]);
  });

  test('no slot is freed that is not there', async () => {
    const { held, settle, free } = await opened(5);
    const made = await held(60_000, 0);
    for (const id of ['first', 'another']) await settle(made, 0, 1, `${id}-${ids++}`);
    expect(await free(1)).toEqual([5]);
    await held(60_000, 0.5);
    expect(await free(1)).toEqual([4]);
  });

  test('a settlement after the end frees no slot, not even of a hold that ends in the same ten seconds', async () => {
    const { held, settle, free } = await opened(5);
    const [first] = [await held(61_000, 0), await held(61_000, 5)];
    for (const id of [undefined, 'late', 'late'])
      expect(await settle(first, 0, 61.5, id)).toMatchObject({ outcome: 'ended' });
    expect((await free(65.9))[0]).toBeLessThanOrEqual(4);
    expect(await free(70.1)).toEqual([5]);
  });

  test('a hold that ends by itself frees its slot, keeps what it has reserved, and cannot be settled', async () => {
    const { hold, held, settle, free, others } = await opened(1, [{}]);
    const made = await held(3_000, 0, 40);
    expect(await hold(3_000, 2.9)).toBeUndefined();
    expect(await settle(made, 0, 4.1)).toMatchObject({ outcome: 'ended' });
    expect(await free(4.1, others)).toEqual([60]);
    expect(await hold(3_000, 4.2, 40)).toBeDefined();
  });

  test('holds of all lengths end by themselves, ten seconds late at most', async () => {
    const { held, free } = await opened(100);
    const ends = [1_000, 2_500, 59_000, 60_000, 61_000, 345_678, 600_000];
    for (const [index, heldMs] of ends.entries()) await held(heldMs, 0.123 * index);
    for (const heldMs of ends) {
      const left = await free(heldMs / 1_000 - 0.001);
      expect(left[0]).toBeLessThanOrEqual(100 - ends.filter((one) => one >= heldMs).length);
    }
    expect(await free(611)).toEqual([100]);
  });

  test('the cost of a held charge is settled like any other', async () => {
    const { held, settle, free, others } = await opened(3, [{}, { counts: 'requests', limit: 5 }]);
    const [first, second] = [await held(60_000, 0, 50), await held(60_000, 1, 40)];
    expect(await settle(first, 10, 2)).toMatchObject({
      outcome: 'settled',
      buckets: [{ remaining: 50, overPoints: 0 }, { remaining: 3 }, undefined],
    });
    await settle({ ...second, refundsRequests: true }, 0, 3);
    expect(await free(3, others)).toEqual([90, 4]);
    expect(await free(3)).toEqual([3]);
  });

  test('a charge that does not fit takes no slot, and a hold out of range charges nothing', async () => {
    const { hold, free, others } = await opened(3, [{ limit: 5 }]);
    expect(await hold(60_000, 0, 6)).toBeUndefined();
    for (const heldMs of [0, -1, 1.5, 600_001]) expect(await hold(heldMs, 0)).toBeUndefined();
    expect([...(await free(0)), ...(await free(0, others))]).toEqual([3, 5]);
  });
}
