import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Awaitable } from '../../src/domain/awaitable.ts';
import { bucketKey } from '../../src/store/keys.ts';
import type { Charge, Decision } from '../../src/store/store.ts';
import { ExactLog } from './exact-log.ts';

/** A store whose time is an argument. */
export interface ClockedStore {
  charge(charge: Charge, nowUs: number): Awaitable<Decision>;
  peek(charge: Charge, nowUs: number): Promise<Decision>;
}

const US_PER_SECOND = 1_000_000;
/** Charges of one slot may share an entry, which expires with the last of them: the counter's only inexactness. */
const SLOTS_PER_WINDOW = 100;
const START_US = 1_790_000_000 * US_PER_SECOND;

interface Step {
  /** Of a window. */
  readonly pause: number;
  readonly account: number;
  readonly cost: number;
  readonly isWithOrganization: boolean;
}

const pause = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 6, arbitrary: fc.double({ min: 0, max: 0.03, noNaN: true }) },
  { weight: 2, arbitrary: fc.double({ min: 0, max: 0.7, noNaN: true }) },
  { weight: 1, arbitrary: fc.constantFrom(1, 1.02, 3) },
);

const step: fc.Arbitrary<Step> = fc.record({
  pause,
  account: fc.integer({ min: 0, max: 1 }),
  cost: fc.integer({ min: 1, max: 10 }),
  isWithOrganization: fc.boolean(),
});

const scenario = fc.record({
  windowSeconds: fc.constantFrom(5, 7, 60),
  accountLimit: fc.integer({ min: 10, max: 60 }),
  organizationLimit: fc.integer({ min: 10, max: 90 }),
  steps: fc.array(step, { minLength: 1, maxLength: 120, size: 'max' }),
});

const skewedStep = fc.record({
  pauseUs: fc.oneof(fc.integer({ min: 0, max: 300_000 }), fc.constant(5 * US_PER_SECOND)),
  backUs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 20_000_000 })),
  cost: fc.integer({ min: 1, max: 10 }),
});

/** What every store guarantees (DESIGN section 3), whatever arrives when. `open` gives a store and a fresh prefix. */
export function testsOfConformance(open: () => Promise<{ store: ClockedStore; prefix: string }>): void {
  test('no window ever holds more than the limit, nothing fitting is denied, and a denial spends nothing', async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async (plan) => {
        const walk = new Walk(store, `${prefix}${run++}`, plan);
        for (const each of plan.steps) await walk.take(each);
        walk.expectStrict();
      }),
      { numRuns: 60, endOnFailure: true },
    );
  });

  test('peek tells what charge would answer and spends nothing', async () => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 7);
    const before = await store.peek(charge, START_US);
    expect(before).toEqual({
      outcome: 'admitted',
      buckets: [{ remaining: 10, resetAfterUs: 0, retryAfterUs: 0 }],
    });
    await store.charge(charge, START_US);
    expect(await store.peek(charge, START_US + 1000)).toEqual(await store.charge(charge, START_US + 1000));
  });

  test('a shadow bucket counts what fits, reports what it would have refused, and refuses nothing', async () => {
    const { store, prefix } = await open();
    const { buckets } = chargeOf(prefix, 10, 7);
    const shadowed: Charge = {
      buckets: buckets.map((bucket) => ({ ...bucket, shadow: true })),
      cost: 7,
      windowSeconds: 5,
    };
    await store.charge(shadowed, START_US);
    expect(await store.charge(shadowed, START_US + 10)).toEqual({
      outcome: 'admitted',
      buckets: [{ remaining: 3, resetAfterUs: 5 * US_PER_SECOND - 10, retryAfterUs: 5 * US_PER_SECOND - 10 }],
    });
  });

  test('a raised limit holds at once, and so does a lowered one', async () => {
    const { store, prefix } = await open();
    const outcomes: string[] = [];
    for (const limit of [10, 20, 5]) {
      const { outcome, ...rest } = await store.charge(chargeOf(prefix, limit, 7), START_US);
      outcomes.push(outcome);
      if ('buckets' in rest) expect(rest.buckets[0]?.remaining).toBeGreaterThanOrEqual(0);
    }
    expect(outcomes).toEqual(['admitted', 'admitted', 'denied']);
  });

  test('a clock that runs back locks nobody out for longer than a window, and admits nothing too much', async () => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 10);
    const backUs = START_US - 10 * US_PER_SECOND;
    expect((await store.charge(charge, START_US)).outcome).toBe('admitted');
    expect(await store.charge(charge, backUs)).toEqual({
      outcome: 'denied',
      buckets: [{ remaining: 0, resetAfterUs: 5 * US_PER_SECOND, retryAfterUs: 5 * US_PER_SECOND }],
    });
    expect((await store.charge(charge, backUs + 5 * US_PER_SECOND - 1)).outcome).toBe('denied');
    expect((await store.charge(charge, backUs + 5 * US_PER_SECOND)).outcome).toBe('admitted');
  });

  test('however often the clock runs back, no true window holds too much, and a quiet window opens every bucket', async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(skewedStep, { maxLength: 60, size: 'max' }), async (steps) => {
        const windowUs = 5 * US_PER_SECOND;
        const log = new ExactLog();
        let [trueUs, skewUs] = [START_US, 0];
        const buckets = [{ key: bucketKey(prefix, 'a', 'account-read', `${run++}`), limit: 20 }];
        for (const { pauseUs, backUs, cost } of steps) {
          trueUs += pauseUs;
          skewUs -= backUs;
          const decision = await store.charge({ buckets, cost, windowSeconds: 5 }, trueUs + skewUs);
          if (decision.outcome === 'admitted') log.add(trueUs, cost);
          if (pauseUs >= windowUs && backUs === 0) expect(decision.outcome).toBe('admitted');
        }
        expect(log.worstWindow(windowUs)).toBeLessThanOrEqual(20);
      }),
      { numRuns: 60, endOnFailure: true },
    );
  });

  test('a clock that jumps forward locks nobody out, neither then nor when it comes back', async () => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 10);
    const aheadUs = START_US + 3600 * US_PER_SECOND;
    await store.charge(charge, START_US);
    expect((await store.charge(charge, aheadUs)).outcome).toBe('admitted');
    expect((await store.charge(charge, START_US)).outcome).toBe('denied');
    expect((await store.charge(charge, START_US + 5 * US_PER_SECOND)).outcome).toBe('admitted');
  });

  test.each<[string, (charge: Charge) => Charge]>([
    ['a cost that is no whole number', (charge) => ({ ...charge, cost: 1.5 })],
    ['a cost of nothing', (charge) => ({ ...charge, cost: 0 })],
    [
      'a limit that is no number',
      ({ buckets, ...rest }) => ({ ...rest, buckets: buckets.map((b) => ({ ...b, limit: Number.NaN })) }),
    ],
    ['one bucket twice', ({ buckets, ...rest }) => ({ ...rest, buckets: [...buckets, ...buckets] })],
    ['no bucket', (charge) => ({ ...charge, buckets: [] })],
  ])('a charge with %s is not counted', async (_what, spoil) => {
    const { store, prefix } = await open();
    const charge = chargeOf(prefix, 10, 1);
    expect(await store.charge(spoil(charge), START_US)).toEqual({ outcome: 'uncounted', reason: 'invalid' });
    expect(await store.peek(charge, START_US)).toMatchObject({ buckets: [{ remaining: 10 }] });
  });

  test('a cost above the limit is denied, and nothing is spent', async () => {
    const { store, prefix } = await open();
    expect(await store.charge(chargeOf(prefix, 10, 11), START_US)).toEqual({
      outcome: 'denied',
      buckets: [{ remaining: 10, resetAfterUs: 0, retryAfterUs: 5 * US_PER_SECOND }],
    });
  });
}

function chargeOf(prefix: string, limit: number, cost: number): Charge {
  return { buckets: [{ key: bucketKey(prefix, 'a', 'account-read', 'a'), limit }], cost, windowSeconds: 5 };
}

/** Sends a scenario's charges and holds every answer against exact logs of what was admitted. */
class Walk {
  readonly #store: ClockedStore;
  readonly #prefix: string;
  readonly #windowSeconds: number;
  readonly #limits: { readonly account: number; readonly organization: number };
  readonly #logs = new Map<string, { readonly log: ExactLog; readonly limit: number }>();
  #nowUs = START_US;

  constructor(
    store: ClockedStore,
    prefix: string,
    plan: { windowSeconds: number; accountLimit: number; organizationLimit: number },
  ) {
    this.#store = store;
    this.#prefix = prefix;
    this.#windowSeconds = plan.windowSeconds;
    this.#limits = { account: plan.accountLimit, organization: plan.organizationLimit };
  }

  async take({ pause, account, cost, isWithOrganization }: Step): Promise<void> {
    this.#nowUs += Math.floor(pause * this.#windowUs);
    const id = `acct_${account}`;
    const buckets = [
      { key: bucketKey(this.#prefix, 'org', 'account-read', id), limit: this.#limits.account },
    ];
    if (isWithOrganization) {
      const key = bucketKey(this.#prefix, 'org', 'organization-read', 'org');
      buckets.push({ key, limit: this.#limits.organization });
    }
    const charge = { buckets, cost, windowSeconds: this.#windowSeconds };
    const foreseen = await this.#store.peek(charge, this.#nowUs);
    const decision = await this.#store.charge(charge, this.#nowUs);
    if (decision.outcome === 'uncounted') throw new Error(`uncounted: ${decision.reason}`);
    expect(foreseen.outcome).toBe(decision.outcome);
    if (decision.outcome === 'denied') expect(foreseen).toEqual(decision);

    const areAllRoomy = buckets.every(({ key, limit }) => this.#kept(key) + cost <= limit);
    if (areAllRoomy) expect(decision.outcome).toBe('admitted');
    for (const [index, { key, limit }] of buckets.entries()) {
      const entry = this.#logs.get(key) ?? { log: new ExactLog(), limit };
      this.#logs.set(key, entry);
      if (decision.outcome === 'admitted') entry.log.add(this.#nowUs, cost);
      await this.#expectState(charge, index, decision);
    }
  }

  expectStrict(): void {
    for (const { log, limit } of this.#logs.values()) {
      expect(log.worstWindow(this.#windowUs)).toBeLessThanOrEqual(limit);
    }
  }

  get #windowUs(): number {
    return this.#windowSeconds * US_PER_SECOND;
  }

  /** What the counter may still hold of a bucket: its window and one slot. */
  #kept(key: string): number {
    const slotUs = this.#windowUs / SLOTS_PER_WINDOW;
    return this.#logs.get(key)?.log.pointsBetween(this.#nowUs - this.#windowUs - slotUs, this.#nowUs) ?? 0;
  }

  async #expectState(charge: Charge, index: number, decision: Exclude<Decision, { outcome: 'uncounted' }>) {
    const bucket = charge.buckets[index];
    const state = decision.buckets[index];
    if (bucket === undefined || state === undefined) throw new Error('a bucket without its state');
    const { remaining, resetAfterUs, retryAfterUs } = state;
    const held =
      this.#logs.get(bucket.key)?.log.pointsBetween(this.#nowUs - this.#windowUs, this.#nowUs) ?? 0;
    expect(remaining).toBeLessThanOrEqual(bucket.limit - held);
    expect(remaining).toBeGreaterThanOrEqual(bucket.limit - this.#kept(bucket.key));

    const alone = { ...charge, buckets: [bucket] };
    const at = async (afterUs: number) => {
      const peeked = await this.#store.peek(alone, this.#nowUs + afterUs);
      return peeked.outcome === 'uncounted' ? undefined : { outcome: peeked.outcome, ...peeked.buckets[0] };
    };
    expect(await at(resetAfterUs)).toMatchObject({ remaining: bucket.limit });
    if (resetAfterUs > 0) expect((await at(resetAfterUs - 1))?.remaining).toBeLessThan(bucket.limit);
    if (decision.outcome === 'admitted' || retryAfterUs === 0) return;
    expect((await at(retryAfterUs))?.outcome).toBe('admitted');
    expect((await at(retryAfterUs - 1))?.outcome).toBe('denied');
  }
}
