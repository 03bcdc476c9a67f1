/** Random charges, among which another program overwrites and damages buckets. */
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import type { CoalescedLog } from '../../src/store/coalesced-log.ts';
import { type BucketLogs, MemoryStore } from '../../src/store/memory-store.ts';
import type { Charge, Decision } from '../../src/store/store.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { runCharges } from '../fixtures/run-charges.ts';
import { WRONG_TYPES, type WrongValue, wrongBytes } from '../fixtures/wrong-values.ts';

const client = new Redis(sharedRedisUrl());
afterAll(() => client.disconnect());

const US_PER_SECOND = 1_000_000;
const START_US = 1_790_000_000 * US_PER_SECOND;
const LONGEST_BYTES = 2_048;

/** The reference. A test can remove its buckets. */
function forgetfulReference(nowUs: () => number) {
  const kept = new Map<string, CoalescedLog>();
  const logs: BucketLogs = {
    get: (key) => kept.get(key),
    renew(key, make) {
      const log = kept.get(key) ?? make(key);
      kept.set(key, log);
      return log;
    },
    clear: () => kept.clear(),
  };
  return { store: new MemoryStore(nowUs, logs), forget: (key: string) => kept.delete(key) };
}

const WINDOWS_SECONDS = [1, 5, 60, 2_678_400];
const wrongArbitrary = fc.oneof(
  fc.constantFrom(...WRONG_TYPES),
  fc
    .tuple(fc.integer({ min: 1, max: LONGEST_BYTES }), fc.integer({ min: 0, max: 3 }))
    .map(([length, kind]) => wrongBytes(length)[kind] ?? (WRONG_TYPES[0] as WrongValue)),
);
const chargeArbitrary = fc.record({
  ids: fc.uniqueArray(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 }),
  limit: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 500, max: 3000 })),
  shadow: fc.boolean(),
  cost: fc.integer({ min: 1, max: 12 }),
});
const batchArbitrary = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 6_000_000 })),
  charges: fc.array(chargeArbitrary, { minLength: 1, maxLength: 6 }),
  wrong: fc.option(fc.record({ id: fc.integer({ min: 0, max: 3 }), value: wrongArbitrary })),
});

/** Buckets, some of them overwritten by another program, and the reference, which forgets these. */
class Overwritten {
  nowUs = START_US;
  readonly #prefix: string;
  readonly #reference = forgetfulReference(() => this.nowUs);
  readonly #wrong = new Map<string, WrongValue>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  keyOf(id: number): string {
    return `${this.#prefix}:${id}`;
  }

  async overwrite(id: number, value: WrongValue): Promise<void> {
    await value.put(client, this.keyOf(id));
    this.#wrong.set(this.keyOf(id), value);
  }

  async expectDecision(charge: Charge, decision: Decision | undefined): Promise<void> {
    const reasons = charge.buckets.flatMap(({ key }) => this.#wrong.get(key)?.reason ?? []);
    if (reasons.length === 0) {
      expect(decision).toEqual(await this.#reference.store.charge(charge));
      return;
    }
    for (const { key } of charge.buckets) if (this.#wrong.delete(key)) this.#reference.forget(key);
    expect(decision?.outcome).toBe('uncounted');
    if (decision?.outcome === 'uncounted') expect(reasons).toContain(decision.reason);
  }
}

test('among any charges, a wrong value changes the first decision that finds it, and the counts of its bucket', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(batchArbitrary, { maxLength: 40, size: 'max' }), async (batches) => {
      run += 1;
      const overwritten = new Overwritten(`${prefix}:${run}`);
      for (const { pauseUs, wrong, charges } of batches) {
        overwritten.nowUs += pauseUs;
        if (wrong !== null) await overwritten.overwrite(wrong.id, wrong.value);
        const batch = charges.map(({ ids, cost, limit, shadow }): Charge => {
          const bucketOf = (id: number) => ({
            key: overwritten.keyOf(id),
            limit,
            shadow,
            windowSeconds: WINDOWS_SECONDS[id] ?? 1,
          });
          return { buckets: ids.map(bucketOf), cost };
        });
        const decisions = await runCharges(client, batch, { nowUs: overwritten.nowUs });
        for (const [index, charge] of batch.entries()) {
          await overwritten.expectDecision(charge, decisions[index]);
        }
      }
    }),
    { numRuns: generatedCases(40), endOnFailure: true },
  );
});

/** A change of a value that a release has written. */
const damage = fc.oneof(
  fc
    .record({ at: fc.nat({ max: 2_000 }), byte: fc.nat({ max: 255 }) })
    .map(({ at, byte }) => (value: Buffer) => {
      const changed = Buffer.from(value);
      changed[at % Math.max(1, value.length)] = byte;
      return changed;
    }),
  fc.nat({ max: 2_000 }).map((length) => (value: Buffer) => value.subarray(0, length % (value.length + 1))),
  fc
    .uint8Array({ minLength: 1, maxLength: 500 })
    .map((tail) => (value: Buffer) => Buffer.concat([value, tail])),
);

async function applyTo(key: string, change: ((value: Buffer) => Buffer) | null): Promise<void> {
  const value = change === null ? null : await client.getBuffer(key);
  if (value !== null && change !== null) await client.set(key, change(value));
}

function expectShortWaits(decision: Decision | undefined): void {
  for (const state of decision?.outcome === 'uncounted' ? [] : (decision?.buckets ?? [])) {
    expect(state?.retryAfterUs).toBeLessThanOrEqual(2 * US_PER_SECOND);
    expect(state?.resetAfterUs).toBeLessThanOrEqual(2 * US_PER_SECOND);
  }
}

test('a damaged bucket harms its owner alone, and for two windows at most', async () => {
  const prefix = uniquePrefix();
  let run = 0;
  const steps = fc.array(
    fc.record({
      pauseUs: fc.nat({ max: 90_000 }),
      cost: fc.integer({ min: 1, max: 12 }),
      change: fc.option(damage, { freq: 12 }),
    }),
    { minLength: 60, maxLength: 150, size: 'max' },
  );
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(20, 600), async (plan, limit) => {
      run += 1;
      let nowUs = START_US;
      const reference = new MemoryStore(() => nowUs);
      const keyOf = (name: string) => `${prefix}:${run}:${name}`;
      const charge = (name: string, cost: number): Charge => ({
        buckets: [{ key: keyOf(name), limit, windowSeconds: 1 }],
        cost,
      });
      for (const { pauseUs, cost, change } of plan) {
        nowUs += pauseUs;
        await applyTo(keyOf('damaged'), change);
        const other = charge('other', cost);
        const [one, own, two] = await runCharges(client, [other, charge('damaged', cost), other], { nowUs });
        expect([one, two]).toEqual([reference.charge(other), reference.charge(other)]);
        expectShortWaits(own);
      }
      nowUs += 2 * US_PER_SECOND;
      await runCharges(client, [charge('damaged', 1)], { nowUs });
      nowUs += US_PER_SECOND;
      const [healed] = await runCharges(client, [charge('damaged', 1)], { nowUs });
      expect(healed).toMatchObject({ outcome: 'admitted', buckets: [{ remaining: limit - 1 }] });
    }),
    { numRuns: generatedCases(60), endOnFailure: true },
  );
});
