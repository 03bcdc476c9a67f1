import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Awaitable } from '../../../src/domain/awaitable.ts';
import { DenialCache } from '../../../src/store/denial-cache.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { Charge, Decision, Settlement, Store } from '../../../src/store/store.ts';
import { silentObserver } from '../../../src/store/store-observer.ts';
import { generatedCases } from '../../fixtures/generated-cases.ts';

const WINDOW_SECONDS = 60;

/** A store at the end of a connection: calls arrive in their order, and answers come back in it. */
class Connection {
  nowUs = 1_000_000_000;
  fromMemory = 0;
  readonly truth = new MemoryStore(() => this.nowUs);
  readonly #outward: (() => () => void)[] = [];
  readonly #homeward: (() => void)[] = [];
  readonly denials = new DenialCache(
    {
      charge: (charge) => this.#call(() => this.truth.charge(charge)),
      settle: (settlement) => this.#call(() => this.truth.settle(settlement)),
      peek: (charge) => this.truth.peek(charge),
      slots: this.truth.slots,
      close: () => this.truth.close(),
    } satisfies Store,
    { ...silentObserver, deniedFromMemory: () => (this.fromMemory += 1) },
    () => this.nowUs,
  );

  #call<Answer>(run: () => Answer): Promise<Answer> {
    return new Promise((resolve) => {
      this.#outward.push(() => {
        const answer = run();
        return () => resolve(answer);
      });
    });
  }

  /** The store decides this many calls, then this many answers arrive. */
  async pass(calls: number, answers: number): Promise<void> {
    this.#homeward.push(...this.#outward.splice(0, calls).map((decide) => decide()));
    for (const arrive of this.#homeward.splice(0, answers)) arrive();
    await new Promise(setImmediate);
  }
}

const chargeOf = (bucket: number, cost: number): Charge => ({
  buckets: [{ key: `bucket ${bucket}`, limit: 20, windowSeconds: WINDOW_SECONDS }],
  cost,
});

const step = fc.record({
  waitUs: fc.constantFrom(0, 1_000, 300_000),
  bucket: fc.integer({ min: 0, max: 1 }),
  cost: fc.integer({ min: 1, max: 12 }),
  isSettled: fc.boolean(),
  final: fc.integer({ min: 0, max: 14 }),
  calls: fc.integer({ min: 0, max: 3 }),
  answers: fc.integer({ min: 0, max: 3 }),
});

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

class Scenario {
  readonly connection = new Connection();
  /** Charges that can be settled. */
  readonly #made: Omit<Settlement, 'id' | 'cost'>[] = [];
  /** By bucket: settlements that are not answered. */
  readonly #settling = [0, 0];
  settled = 0;
  refused = 0;

  async play({ waitUs, bucket, cost, isSettled, final, calls, answers }: Step): Promise<void> {
    this.connection.nowUs += waitUs;
    const one = isSettled ? this.#made.shift() : undefined;
    if (one !== undefined) void this.#settle(one, final);
    await this.#charge(bucket, chargeOf(bucket, cost));
    await this.connection.pass(calls, answers);
  }

  async #settle(one: Omit<Settlement, 'id' | 'cost'>, cost: number): Promise<void> {
    const bucket = one.charge.buckets[0]?.key === 'bucket 0' ? 0 : 1;
    const countUnanswered = (more: number) => {
      this.#settling[bucket] = (this.#settling[bucket] ?? 0) + more;
    };
    countUnanswered(1);
    this.settled += 1;
    await this.connection.denials.settle({ ...one, cost, id: `${this.settled}` });
    countUnanswered(-1);
  }

  async #charge(bucket: number, charge: Charge): Promise<void> {
    const truth = await this.connection.truth.peek(charge);
    const before = this.connection.fromMemory;
    const decided = this.connection.denials.charge(charge);
    if (this.connection.fromMemory > before && this.#settling[bucket] === 0) {
      this.refused += 1;
      expect(truth.outcome).toBe('denied');
    }
    void this.#keep(charge, decided);
  }

  async #keep(charge: Charge, decided: Awaitable<Decision>): Promise<void> {
    const decision = await decided;
    if (decision.outcome === 'admitted')
      this.#made.push({ charge, chargedAtUs: decision.chargedAtUs, refundsRequests: false });
  }
}

test('from the answer to a settlement on, no denial that it has made wrong refuses a charge', async () => {
  let refused = 0;
  let settled = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120, size: 'max' }), async (steps) => {
      const scenario = new Scenario();
      for (const one of steps) await scenario.play(one);
      refused += scenario.refused;
      settled += scenario.settled;
    }),
    { numRuns: generatedCases(300), endOnFailure: true },
  );
  expect(Math.min(refused, settled)).toBeGreaterThan(50);
});

test('the number of settled buckets in memory is bounded, and none of their denials comes back', async () => {
  const connection = new Connection();
  const full = chargeOf(0, 20);
  void connection.denials.charge(full);
  void connection.denials.charge(full);
  await connection.pass(2, 2);
  void connection.denials.charge(full);
  expect(connection.fromMemory).toBe(1);
  for (let id = 0; id < 12_000; id++) {
    const settlement = { charge: chargeOf(id, 1), chargedAtUs: undefined, refundsRequests: false, cost: 0 };
    void connection.denials.settle({ ...settlement, id: `${id}` });
  }
  await connection.pass(12_000, 12_000);
  void connection.denials.charge(full);
  expect(connection.fromMemory).toBe(1);
});
