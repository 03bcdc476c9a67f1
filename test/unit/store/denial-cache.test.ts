import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DenialCache } from '../../../src/store/denial-cache.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import { silentObserver } from '../../../src/store/observer.ts';
import type { BucketCharge, Charge, Decision, Store } from '../../../src/store/store.ts';

const WINDOW_US = 1_000_000;

/** A store at the end of a slow line, in simulated time: charges take time to arrive, and answers to come back. */
class Simulation {
  nowUs = 1_000_000_000;
  fromMemory = 0;
  calls = 0;
  readonly truth = new MemoryStore(() => this.nowUs);
  readonly #events: { readonly atUs: number; run(): void }[] = [];
  #outwardUs = 0;
  #homewardUs = 0;
  readonly denials = new DenialCache(
    this.#slowStore(),
    { ...silentObserver, deniedFromMemory: () => (this.fromMemory += 1) },
    () => this.nowUs,
  );

  /** Lets the time pass, with everything that happens in it. */
  async advance(byUs: number): Promise<void> {
    const untilUs = this.nowUs + byUs;
    for (;;) {
      this.#events.sort((a, b) => a.atUs - b.atUs);
      const [next] = this.#events;
      if (next === undefined || next.atUs > untilUs) break;
      this.#events.shift();
      this.nowUs = next.atUs;
      next.run();
      await new Promise(setImmediate);
    }
    this.nowUs = untilUs;
  }

  async charge(charge: Charge, outwardUs: number, homewardUs: number): Promise<Decision> {
    this.#outwardUs = outwardUs;
    this.#homewardUs = homewardUs;
    return this.denials.charge(charge);
  }

  #slowStore(): Store {
    return {
      charge: (charge) => {
        this.calls += 1;
        const homewardUs = this.#homewardUs;
        return new Promise((resolve) => {
          this.#after(this.#outwardUs, async () => {
            const decision = await this.truth.charge(charge);
            this.#after(homewardUs, () => resolve(decision));
          });
        });
      },
      peek: (charge) => this.truth.peek(charge),
      close: () => this.truth.close(),
    };
  }

  #after(delayUs: number, run: () => void): void {
    this.#events.push({ atUs: this.nowUs + delayUs, run });
  }
}

const delayUs = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 2000 }),
  fc.integer({ min: 0, max: 900_000 }),
);

const attempt = fc.record({
  pauseUs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 30_000 }),
    fc.integer({ min: 0, max: 1_200_000 }),
  ),
  outwardUs: delayUs,
  homewardUs: delayUs,
  account: fc.integer({ min: 0, max: 1 }),
  cost: fc.integer({ min: 2, max: 3 }),
  accountLimit: fc.constantFrom(8, 8, 8, 8, 12),
  isShadow: fc.oneof(
    { weight: 5, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  ),
});

test('no cached denial refuses what the store would admit, with late answers and changed limits', async () => {
  let remembered = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { minLength: 10, maxLength: 120, size: 'max' }), async (attempts) => {
      const simulation = new Simulation();
      for (const { pauseUs, outwardUs, homewardUs, account, cost, accountLimit, isShadow } of attempts) {
        await simulation.advance(pauseUs);
        const buckets: BucketCharge[] = [
          { key: `account ${account}`, limit: accountLimit, shadow: isShadow },
          { key: 'organization', limit: 14 },
        ];
        const charge = { buckets, cost, windowSeconds: 1 };
        const truth = await simulation.truth.peek(charge);
        const before = simulation.fromMemory;
        void simulation.charge(charge, outwardUs, homewardUs);
        if (simulation.fromMemory > before) expect(truth.outcome).toBe('denied');
      }
      remembered += simulation.fromMemory;
    }),
    { numRuns: 400, endOnFailure: true },
  );
  expect(remembered).toBeGreaterThan(100);
});

const full: Charge = { buckets: [{ key: 'a', limit: 10 }], cost: 10, windowSeconds: 1 };

/** A bucket that is full, whose denial has been learnt over a line of 1 ms each way. */
async function learnt(): Promise<Simulation> {
  const simulation = new Simulation();
  for (let turn = 0; turn < 2; turn++) {
    void simulation.charge(full, 1000, 1000);
    await simulation.advance(2000);
  }
  expect(simulation.calls).toBe(2);
  return simulation;
}

test('a cached denial reports the remaining waits, never too short', async () => {
  const simulation = await learnt();
  await simulation.advance(90_000);
  const truth = await simulation.truth.peek(full);
  const denial = await simulation.charge(full, 0, 0);
  expect(simulation.fromMemory).toBe(1);
  if (truth.outcome !== 'denied' || denial.outcome !== 'denied') throw new Error('both must deny');
  const [cached] = denial.buckets;
  const [real] = truth.buckets;
  expect(cached?.remaining).toBe(real?.remaining);
  expect(cached?.retryAfterUs).toBeGreaterThanOrEqual(real?.retryAfterUs ?? 0);
  expect(cached?.retryAfterUs).toBeLessThanOrEqual((real?.retryAfterUs ?? 0) + 1000);
  expect(cached?.resetAfterUs).toBeGreaterThanOrEqual(real?.resetAfterUs ?? 0);
});

test.each<[string, Charge]>([
  ['another limit', { ...full, buckets: [{ key: 'a', limit: 11 }] }],
  ['another window', { ...full, windowSeconds: 2 }],
  ['a lower cost', { ...full, cost: 1 }],
  ['another bucket', { ...full, buckets: [{ key: 'b', limit: 10 }] }],
  ['a bucket that has become a shadow', { ...full, buckets: [{ key: 'a', limit: 10, shadow: true }] }],
])('a denial does not apply to %s', async (_what, charge) => {
  const simulation = await learnt();
  void simulation.charge(charge, 0, 0);
  expect(simulation.fromMemory).toBe(0);
});

test('an evicted denial is decided by the store again', async () => {
  const simulation = await learnt();
  simulation.denials.forget();
  void simulation.charge(full, 0, 0);
  expect(simulation.fromMemory).toBe(0);
});

test('a flood against a full bucket costs the store a few calls', async () => {
  const simulation = new Simulation();
  const charge = { buckets: [{ key: 'a', limit: 100 }], cost: 1, windowSeconds: 1 };
  for (let sent = 0; sent < 5000; sent++) {
    void simulation.charge(charge, 200, 200);
    await simulation.advance((2 * WINDOW_US) / 5000);
  }
  expect(simulation.fromMemory).toBeGreaterThan(4500);
});

test('memory of denials is bounded', async () => {
  const simulation = new Simulation();
  const before = process.memoryUsage().heapUsed;
  for (let id = 0; id < 30_000; id++) {
    void simulation.charge({ buckets: [{ key: `${id}`, limit: 1 }], cost: 2, windowSeconds: 60 }, 0, 0);
    if (id % 1000 === 999) await simulation.advance(1);
  }
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);
});
