/** What the packed texts of a call must carry whole: any key, any number in range, several windows, slots. */
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Hold } from '../../src/store/in-flight/held-slots.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import { RedisStore } from '../../src/store/redis/redis-store.ts';
import type { BucketCharge, Charge, Decision, Store } from '../../src/store/store.ts';
import { silentObserver } from '../../src/store/store-observer.ts';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';

const HIGHEST = 2_000_000_000;

/** Ids as other programs and attackers write them: what separates numbers in a text, patterns of Lua, RESP. */
const IDS = [
  '',
  'a b',
  '1500 1 5',
  '#5',
  ',9 9 9',
  '-1',
  '%d+',
  '}a{b}{',
  '\r\n$3\r\n',
  '\0',
  'ünï💥',
  'x'.repeat(5_000),
];

/** No charge expires while the test runs. */
const WINDOWS_SECONDS = [600, 86_400, 2_678_400];

const limit = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(HIGHEST - 1, HIGHEST));
const cost = fc.oneof(
  { weight: 9, arbitrary: fc.integer({ min: 1, max: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(HIGHEST - 1, HIGHEST) },
);

const chargeArbitrary = fc.record({
  ids: fc.uniqueArray(fc.nat(IDS.length - 1), { minLength: 1, maxLength: 5 }),
  limits: fc.array(limit, { minLength: 5, maxLength: 5 }),
  shadows: fc.array(fc.boolean(), { minLength: 5, maxLength: 5 }),
  slots: fc.uniqueArray(fc.nat(2), { maxLength: 3 }),
  slotLimits: fc.array(fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(HIGHEST)), {
    minLength: 3,
    maxLength: 3,
  }),
  cost,
  /** Whether the request ends before the next turn. */
  isShort: fc.boolean(),
});
type Drawn = typeof chargeArbitrary extends fc.Arbitrary<infer Value> ? Value : never;

function bucketsOf(prefix: string, { ids, limits, shadows, slots, slotLimits }: Drawn): BucketCharge[] {
  const points = ids.map(
    (id, index): BucketCharge => ({
      key: `${prefix}:1:{a}:points:${IDS[id]}`,
      limit: limits[index] ?? 1,
      windowSeconds: WINDOWS_SECONDS[id % WINDOWS_SECONDS.length] ?? 600,
      counts: id % 4 === 3 ? 'requests' : 'points',
      shadow: shadows[index] ?? false,
    }),
  );
  const inFlight = slots.map(
    (slot, index): BucketCharge => ({
      key: `${prefix}:1:{a}:flight.slots:${IDS[slot]}`,
      limit: slotLimits[index] ?? 1,
      windowSeconds: 0,
      counts: 'concurrent',
      shadow: shadows[4 - index] ?? false,
    }),
  );
  // Slots may stand between other buckets.
  return inFlight.length > 1
    ? [...inFlight.slice(1), ...points, ...inFlight.slice(0, 1)]
    : [...points, ...inFlight];
}

/** What does not depend on the time. A store may leave buckets out of a denial. */
function comparable(decision: Decision, reference: Decision) {
  if (decision.outcome === 'uncounted' || reference.outcome === 'uncounted') return decision;
  const buckets = decision.buckets.map((state, index) => {
    const { remaining, retryAfterUs } = state ??
      reference.buckets[index] ?? { remaining: -1, retryAfterUs: -1 };
    return { remaining, hasRoom: retryAfterUs === 0 };
  });
  return { outcome: decision.outcome, buckets };
}

/** Charges made in one turn, with holds of their own. */
function chargesOf(prefix: string, turn: readonly Drawn[]) {
  return turn.map((drawn) => ({ buckets: bucketsOf(prefix, drawn), cost: drawn.cost, hold: new Hold() }));
}

function decideAll(store: Store, charges: readonly Charge[]): Promise<Decision[]> {
  return Promise.all(charges.map((charge) => store.charge(charge)));
}

async function open(): Promise<Store> {
  const settings = { kind: 'redis', url: sharedRedisUrl(), deadlineMs: 60_000 } as const;
  // Without the cache of denials, so that every charge is a call.
  const store = new RedisStore(settings, silentObserver, () => {});
  onTestFinished(() => store.close());
  const trial = { buckets: [{ key: uniquePrefix(), limit: 1, windowSeconds: 1 }], cost: 1 };
  const soon = { timeout: 30_000, interval: 10 };
  await vi.waitFor(async () => expect((await store.peek(trial)).outcome).toBe('admitted'), soon);
  return store;
}

const turns = fc.array(fc.array(chargeArbitrary, { minLength: 1, maxLength: 8 }), {
  maxLength: 12,
  size: 'max',
});

test('batches of any charges are decided in Redis as by the reference one by one', async () => {
  const store = await open();
  const reference = new MemoryStore();
  await fc.assert(
    fc.asyncProperty(turns, async (plan) => {
      const prefix = uniquePrefix();
      const open: Hold[] = [];
      for (const turn of plan) {
        const charges = chargesOf(prefix, turn);
        const expectedCharges = chargesOf(prefix, turn);
        const decisions = await decideAll(store, charges);
        const expected = await decideAll(reference, expectedCharges);
        const seen = expected.map((one, index) => comparable(decisions[index] ?? one, one));
        expect(seen).toEqual(expected.map((one) => comparable(one, one)));
        const holds = [charges, expectedCharges].map((all) => all.map(({ hold }) => hold));
        for (const [index, hold] of holds.flatMap((all) => [...all.entries()])) {
          if (turn[index]?.isShort) hold.end();
          else open.push(hold);
        }
      }
      for (const hold of open) hold.end();
    }),
    { numRuns: generatedCases(60), endOnFailure: true },
  );
});
