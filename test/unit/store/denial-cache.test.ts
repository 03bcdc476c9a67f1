import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DenialCache } from '../../../src/store/denial-cache.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { BucketCharge, Charge, Decision, Store } from '../../../src/store/store.ts';
import { silentObserver } from '../../../src/store/store-observer.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

const US_PER_SECOND = 1_000_000;

/** A store at the end of a slow line, in simulated time: charges take time to arrive, and answers to come back. */
class Simulation {
  nowUs = 1_000_000_000;
  fromMemory = 0;
  calls = 0;
  truth = new MemoryStore(() => this.nowUs);
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
      settle: (settlement) => this.truth.settle(settlement),
      peek: (charge) => this.truth.peek(charge),
      slots: this.truth.slots,
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
    fc.integer({ min: 0, max: 12_000_000 }),
  ),
  outwardUs: delayUs,
  homewardUs: delayUs,
  account: fc.integer({ min: 0, max: 2 }),
  isWithOrganization: fc.boolean(),
  cost: fc.integer({ min: 2, max: 3 }),
  accountLimit: fc.constantFrom(8, 8, 8, 8, 12),
  isShadow: fc.oneof(
    { weight: 5, arbitrary: fc.constant(false) },
    { weight: 1, arbitrary: fc.constant(true) },
  ),
});

/** By Account. */
const WINDOWS_SECONDS = [1, 20, 7200];

test('no cached denial refuses what the store would admit, with windows of any length, late answers and changed limits', async () => {
  let remembered = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { minLength: 10, maxLength: 120, size: 'max' }), async (attempts) => {
      const simulation = new Simulation();
      for (const {
        pauseUs,
        outwardUs,
        homewardUs,
        account,
        cost,
        accountLimit,
        isShadow,
        ...one
      } of attempts) {
        await simulation.advance(pauseUs);
        const windowSeconds = WINDOWS_SECONDS[account] ?? 1;
        const buckets: BucketCharge[] = [
          { key: `account ${account}`, limit: accountLimit, windowSeconds, shadow: isShadow },
        ];
        if (one.isWithOrganization) buckets.push({ key: 'organization', limit: 14, windowSeconds: 5 });
        const charge = { buckets, cost };
        const truth = await simulation.truth.peek(charge);
        const before = simulation.fromMemory;
        void simulation.charge(charge, outwardUs, homewardUs);
        if (simulation.fromMemory > before) expect(truth.outcome).toBe('denied');
      }
      remembered += simulation.fromMemory;
    }),
    { numRuns: generatedCases(400), endOnFailure: true },
  );
  expect(remembered).toBeGreaterThan(100);
});

const bucket: BucketCharge = { key: 'a', limit: 10, windowSeconds: 1 };
const full: Charge = { buckets: [bucket], cost: 10 };

function fullFor(windowSeconds: number): Charge {
  return { ...full, buckets: [{ ...bucket, windowSeconds }] };
}

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
  ['another limit', { ...full, buckets: [{ ...bucket, limit: 11 }] }],
  ['another window', { ...full, buckets: [{ ...bucket, windowSeconds: 2 }] }],
  ['a lower cost', { ...full, cost: 1 }],
  ['another bucket', { ...full, buckets: [{ ...bucket, key: 'b' }] }],
  ['a bucket that has become a shadow', { ...full, buckets: [{ ...bucket, shadow: true }] }],
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
  const charge = { buckets: [{ key: 'a', limit: 100, windowSeconds: 1 }], cost: 1 };
  for (let sent = 0; sent < 5000; sent++) {
    void simulation.charge(charge, 200, 200);
    await simulation.advance((2 * US_PER_SECOND) / 5000);
  }
  expect(simulation.fromMemory).toBeGreaterThan(4500);
});

test.each([1, 60, 3600])(
  'a store that lost its counts is asked again within a second, with a window of %i s',
  async (windowSeconds) => {
    const charge: Charge = fullFor(windowSeconds);
    const simulation = new Simulation();
    for (let turn = 0; turn < 2; turn++) {
      void simulation.charge(charge, 1000, 1000);
      await simulation.advance(2000);
    }
    void simulation.charge(charge, 1000, 1000);
    expect(simulation.fromMemory, 'the denial is cached').toBe(1);
    simulation.truth = new MemoryStore(() => simulation.nowUs);
    await simulation.advance(US_PER_SECOND);
    const admitted = simulation.charge(charge, 1000, 1000);
    await simulation.advance(2000);
    expect(await admitted).toMatchObject({ outcome: 'admitted' });

    // The next denial is about the new charge, and so is its wait.
    const decided = simulation.charge(charge, 1000, 1000);
    await simulation.advance(2000);
    const truth = await simulation.truth.peek(charge);
    const cached = await simulation.charge(charge, 0, 0);
    for (const denial of [await decided, cached]) {
      if (denial.outcome !== 'denied' || truth.outcome !== 'denied') throw new Error('all must deny');
      const waitUs = denial.buckets[0]?.retryAfterUs ?? 0;
      const trueUs = truth.buckets[0]?.retryAfterUs ?? 0;
      expect(waitUs).toBeGreaterThanOrEqual(trueUs);
      expect(waitUs).toBeLessThanOrEqual(trueUs + 2000);
    }
  },
);

test('a denial is never older than a second, however late its answer came', async () => {
  const charge: Charge = fullFor(60);
  const simulation = new Simulation();
  void simulation.charge(charge, 0, 0);
  await simulation.advance(1);
  void simulation.charge(charge, 0, 700_000);
  await simulation.advance(700_000);
  void simulation.charge(charge, 0, 0);
  expect(simulation.fromMemory).toBe(1);
  await simulation.advance(300_001);
  void simulation.charge(charge, 0, 0);
  expect(simulation.fromMemory).toBe(1);
});

test('a flood against a full bucket of a long window costs the store a call each second', async () => {
  const simulation = new Simulation();
  const charge = fullFor(600);
  for (let sent = 0; sent < 5000; sent++) {
    void simulation.charge(charge, 200, 200);
    await simulation.advance(2000);
  }
  expect(simulation.fromMemory).toBeGreaterThan(4500);
  expect(simulation.calls).toBeLessThanOrEqual(12);
});

test('the number of denials in memory is bounded', async () => {
  const nowUs = () => 1_000_000_000;
  let fromMemory = 0;
  const observer = { ...silentObserver, deniedFromMemory: () => (fromMemory += 1) };
  const denials = new DenialCache(new MemoryStore(nowUs), observer, nowUs);
  const charge = (id: number) =>
    denials.charge({ buckets: [{ key: `${id}`, limit: 1, windowSeconds: 60 }], cost: 2 });
  for (let id = 0; id < 30_000; id++) await charge(id);
  expect(fromMemory).toBe(0);
  // From the newest to the oldest: a denial that is learned again meanwhile only replaces one that was counted.
  for (let id = 29_999; id >= 0; id--) await charge(id);
  expect(fromMemory).toBeGreaterThanOrEqual(5000);
  expect(fromMemory).toBeLessThanOrEqual(10_000);
});

const DAY_SECONDS = 86_400;
const month: BucketCharge = { key: 'month', limit: 10, windowSeconds: 30 * DAY_SECONDS };
const minute: BucketCharge = { key: 'minute', limit: 1000, windowSeconds: 60 };
const second: BucketCharge = { key: 'second', limit: 1000, windowSeconds: 1 };

/** The denial of a full bucket has been learnt, together with what is known of `others`. */
async function learntOf(bucket: BucketCharge, ...others: BucketCharge[]): Promise<Simulation> {
  const simulation = new Simulation();
  void simulation.charge({ buckets: [bucket], cost: bucket.limit }, 0, 0);
  await simulation.advance(1);
  void simulation.charge({ buckets: [bucket, ...others], cost: 1 }, 0, 0);
  await simulation.advance(1);
  return simulation;
}

test('an exhausted month costs the store one call in a second, whatever other buckets a request needs', async () => {
  const simulation = await learntOf(month, second);
  const calls = simulation.calls;
  for (let sent = 0; sent < 1_000; sent++) {
    const other = { ...minute, key: `minute ${sent % 50}` };
    const buckets = [[second, month], [other, month], [month]][sent % 3] ?? [];
    expect((await simulation.charge({ buckets, cost: 1 }, 0, 0)).outcome).toBe('denied');
    await simulation.advance(999);
  }
  expect(simulation.calls).toBe(calls);
});

test('a cached denial reports what is known of other buckets, and nothing of one that is unknown', async () => {
  const simulation = await learntOf(month, second);
  void simulation.truth.charge({ buckets: [second], cost: 5 });
  const denial = await simulation.charge({ buckets: [second, minute, month], cost: 1 }, 0, 0);
  expect(denial).toMatchObject({
    outcome: 'denied',
    buckets: [{ remaining: 1000, retryAfterUs: 0 }, undefined, { remaining: 0 }],
  });
});

test('the store is asked where a bucket of unknown state may need a longer wait than the cached denial', async () => {
  const simulation = await learntOf({ ...second, limit: 10 });
  const calls = simulation.calls;
  void simulation.charge({ buckets: [{ ...second, limit: 10 }, minute], cost: 1 }, 0, 0);
  expect(simulation.calls).toBe(calls + 1);
});

test('a removed row no longer refuses, and a limit of requests refuses whatever the cost', async () => {
  const requests: BucketCharge = { ...month, counts: 'requests', limit: 1 };
  const simulation = await learntOf(requests, second);
  const calls = simulation.calls;
  expect((await simulation.charge({ buckets: [requests, second], cost: 7 }, 0, 0)).outcome).toBe('denied');
  expect(simulation.calls).toBe(calls);
  const admitted = simulation.charge({ buckets: [second], cost: 1 }, 0, 0);
  await simulation.advance(1);
  expect((await admitted).outcome).toBe('admitted');
});

test('a store that lost the counts of a month is asked again within a second', async () => {
  const simulation = await learntOf(month);
  simulation.truth = new MemoryStore(() => simulation.nowUs);
  await simulation.advance(US_PER_SECOND);
  const admitted = simulation.charge({ buckets: [month], cost: 1 }, 0, 0);
  await simulation.advance(1);
  expect((await admitted).outcome).toBe('admitted');
});

/** Two masters of a Cluster, each with the keys that begin with its letter. A call can be held, and answered later. */
class Masters {
  nowUs = 1_000_000_000;
  fromMemory = 0;
  readonly calls = { a: 0, b: 0 };
  readonly away = { a: false, b: false };
  #held: (() => void)[] | undefined;
  readonly #truth = new MemoryStore(() => this.nowUs);
  readonly denials = new DenialCache(
    {
      charge: (charge) => {
        const master = charge.buckets[0]?.key.startsWith('a') ? 'a' : 'b';
        this.calls[master] += 1;
        if (this.away[master]) return { outcome: 'uncounted', reason: 'disconnected' };
        const decision = this.#truth.charge(charge);
        const held = this.#held;
        return held === undefined ? decision : new Promise((resolve) => held.push(() => resolve(decision)));
      },
      settle: (settlement) => this.#truth.settle(settlement),
      peek: (charge) => this.#truth.peek(charge),
      slots: this.#truth.slots,
      close: () => this.#truth.close(),
    },
    { ...silentObserver, deniedFromMemory: () => (this.fromMemory += 1) },
    () => this.nowUs,
    (key) => (key.startsWith('a') ? 0 : 1),
  );

  async charge(key: string): Promise<Decision> {
    this.nowUs += 10;
    return this.denials.charge({ buckets: [{ key, limit: 1, windowSeconds: 60 }], cost: 1 });
  }

  hold(): void {
    this.#held = [];
  }

  answer(): void {
    for (const resolve of this.#held ?? []) resolve();
    this.#held = undefined;
  }
}

test('a flood on one master of a Cluster is refused from memory while another one is down', async () => {
  const masters = new Masters();
  masters.away.b = true;
  for (let sent = 0; sent < 100; sent++) {
    await masters.charge('a');
    expect((await masters.charge(`b${sent}`)).outcome).toBe('uncounted');
  }
  expect(masters.calls).toEqual({ a: 2, b: 100 });
});

test('a denial by the slot that was not counted is dropped, one that is on its way included', async () => {
  const masters = new Masters();
  for (const key of ['a', 'b', 'b2', 'a', 'b']) await masters.charge(key);
  masters.hold();
  const late = masters.charge('b2');
  masters.away.b = true;
  await masters.charge('b3');
  masters.away.b = false;
  masters.answer();
  expect((await late).outcome).toBe('denied');
  const { fromMemory } = masters;
  await masters.charge('a');
  expect(masters.fromMemory).toBe(fromMemory + 1);
  const { b } = masters.calls;
  for (const key of ['b', 'b2']) expect((await masters.charge(key)).outcome).toBe('denied');
  expect(masters.calls.b).toBe(b + 2);
  // From now on, they are known again.
  for (const key of ['b', 'b2']) expect((await masters.charge(key)).outcome).toBe('denied');
  expect(masters.calls.b).toBe(b + 2);
});
