import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { sharedRedisUrl, uniquePrefix } from '../fixtures/redis-url.ts';
import { clockedMemory } from '../store/clocked-memory.ts';
import { openClockedRedis } from '../store/clocked-redis.ts';
import type { ClockedStore } from '../store/conformance.ts';
import { NEVER, type Row, SettledCosts, type Step } from './settled-costs.ts';

async function play(store: ClockedStore, prefix: string, some: readonly Row[], steps: readonly Step[]) {
  const scenario = new SettledCosts(store, prefix, some);
  await scenario.play(steps);
  return scenario.answers;
}

const rows = fc.uniqueArray(
  fc.record({ windowSeconds: fc.constantFrom(1, 5, 7, 60), limit: fc.integer({ min: 10, max: 499 }) }),
  { minLength: 1, maxLength: 4, selector: ({ windowSeconds }) => windowSeconds },
);

const SAVED = [0, 0, 0.3, 0.5, 1, 1];
const SAVED_OR_ADDED = [...SAVED, 1.5, 3];

const NONE: fc.Arbitrary<number> = fc.constant(0);
const refunds = fc.oneof({ weight: 5, arbitrary: NONE }, fc.integer({ min: 1, max: 120 }));

function stepsOf(
  back: fc.Arbitrary<number>,
  finals: readonly number[],
  refund = NONE,
  settled = fc.oneof(NONE, fc.integer({ min: 0, max: 12 })),
) {
  const pause = fc.oneof(
    fc.constant(0),
    fc.double({ min: 0, max: 0.02, noNaN: true }),
    fc.double({ min: 0, max: 0.6, noNaN: true }),
  );
  const step = fc.record({
    pause,
    back,
    cost: fc.integer({ min: 1, max: 40 }),
    settled,
    final: fc.constantFrom(...finals),
    isSentTwice: fc.boolean(),
    refund,
  });
  return fc.array(step, { minLength: 1, maxLength: 80, size: 'max' });
}

/** Some charges within 1/100 of a window, and others about a window later, when the first ones expire. */
function burstsOf(cost: fc.Arbitrary<number>) {
  const pause = fc.oneof(
    { weight: 8, arbitrary: fc.double({ min: 0.0001, max: 0.004, noNaN: true }) },
    { weight: 1, arbitrary: fc.double({ min: 0.01, max: 0.5, noNaN: true }) },
    { weight: 1, arbitrary: fc.double({ min: 0.985, max: 1, noNaN: true }) },
  );
  const step = fc.record({
    pause,
    back: NONE,
    cost,
    settled: fc.integer({ min: 0, max: 8 }),
    final: fc.constantFrom(...SAVED_OR_ADDED),
    isSentTwice: fc.constant(false),
    refund: NONE,
  });
  return fc.array(step, { minLength: 1, maxLength: 80, size: 'max' });
}

const saved = stepsOf(NONE, SAVED);
const refunded = stepsOf(NONE, SAVED, refunds, fc.constant(NEVER));
// One refund among the steps, and a scenario no longer says where there was room.
const forward = fc.oneof(stepsOf(NONE, SAVED_OR_ADDED), stepsOf(NONE, SAVED_OR_ADDED, refunds));
const stepped = stepsOf(
  fc.oneof({ weight: 12, arbitrary: fc.constant(0) }, fc.constantFrom(0.001, 0.3, 0.99, 1.5, 30)),
  SAVED_OR_ADDED,
  refunds,
);

test('settled charges are decided in memory as an exact log with their final costs would', async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(rows, fc.oneof(saved, refunded, forward), async (some, steps) => {
      await play(clockedMemory(), `m${run++}`, some, steps);
    }),
    { numRuns: generatedCases(600), endOnFailure: true },
  );
});

test.each([
  ['alone', 60, fc.integer({ min: 1, max: 30 })],
  [
    'with others',
    500,
    fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 2 }) }, fc.integer({ min: 470, max: 499 })),
  ],
])(
  'a refund frees its own points, and none of a charge that still counts, in entries that charges have %s',
  async (_how, limit, cost) => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(burstsOf(cost), async (steps) => {
        await play(clockedMemory(), `n${run++}`, [{ windowSeconds: 1, limit }], steps);
      }),
      { numRuns: generatedCases(2_000), endOnFailure: true },
    );
  },
);

test('Redis answers as the memory store does, whatever is settled, and when its clock is set back', async () => {
  const { store, close } = await openClockedRedis({ kind: 'redis', url: sharedRedisUrl(), deadlineMs: 5000 });
  onTestFinished(close);
  const prefix = uniquePrefix();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      rows,
      fc.oneof(forward, stepped, burstsOf(fc.integer({ min: 1, max: 40 }))),
      async (given, steps) => {
        // A denial writes nothing to Redis, not even the time at which it was decided: where the clock is set back, nothing is denied.
        const some = steps.every(({ back }) => back === 0)
          ? given
          : given.map((row) => ({ ...row, limit: 10_000 }));
        const name = `${prefix}${run++}`;
        const expected = await play(clockedMemory(), name, some, steps);
        expect(await play(store, name, some, steps)).toEqual(expected);
      },
    ),
    { numRuns: generatedCases(150), endOnFailure: true },
  );
});
