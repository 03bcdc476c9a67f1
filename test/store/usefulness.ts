import fc from 'fast-check';
import { expect, test } from 'vitest';
import { generatedCases } from '../fixtures/generated-cases.ts';
import { anyBursts, arrivalsOf, type Bursts, promisedShare } from './bursts.ts';
import type { ClockedStore } from './conformance.ts';
import { anyGroups, arrivalsOfGroups, costlyGroups, type Groups, HAND_MADE, keptTooLong } from './groups.ts';
import { usefulShare } from './least-useful.ts';

const EVERY_WINDOW: Omit<Bursts, 'width'> = {
  limit: 500,
  count: 6,
  period: 1,
  phase: 0.1,
  jitter: 0,
  size: 1,
  costs: [1],
  last: 0,
  seed: 1,
};

/** A client that sends all it may at once, and waits for the window to pass. */
const REPORTED: readonly { readonly name: string; readonly bursts: Bursts }[] = [
  ...[0.001, 0.005, 0.009, 0.02, 0.05, 0.1, 0.3].map((width) => ({
    name: `its limit within ${width} of a window`,
    bursts: { ...EVERY_WINDOW, width },
  })),
  { name: 'its limit at jittered moments', bursts: { ...EVERY_WINDOW, width: 0.005, jitter: 0.003 } },
  { name: 'half its limit', bursts: { ...EVERY_WINDOW, width: 0.005, period: 0.5, size: 0.5, count: 12 } },
];

/** That the store refuses hardly more than an exact sliding log would. In CI, `runs` patterns are tried. */
export function testsOfUsefulness(
  open: () => Promise<{ store: ClockedStore; prefix: string }>,
  runs: number,
): void {
  test('for costs of 1 to 10, every pattern of bursts gets at least 98 % of what an exact sliding log would admit', async () => {
    const { store, prefix } = await open();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(anyBursts, async (bursts) => {
        const { share, points } = await usefulShare(
          store,
          `${prefix}${run++}`,
          bursts.limit,
          arrivalsOf(bursts),
        );
        fc.pre(points > 0);
        const promised = promisedShare(bursts.limit, [...bursts.costs, bursts.last]);
        expect(promised, 'the promise itself').toBeGreaterThanOrEqual(0.98);
        expect(share, 'the share of the exact points').toBeGreaterThanOrEqual(promised);
      }),
      { numRuns: generatedCases(runs), endOnFailure: true },
    );
  });

  test('so does every pattern of simultaneous requests, made by hand or not', async () => {
    const { store, prefix } = await open();
    let run = 0;
    const judge = async (groups: Groups) => {
      const key = `${prefix}${run++}`;
      const { share, points } = await usefulShare(store, key, groups.limit, arrivalsOfGroups(groups));
      const promised = promisedShare(
        groups.limit,
        groups.groups.map(({ cost }) => cost),
      );
      expect(promised, 'the promise itself').toBeGreaterThanOrEqual(0.98);
      if (points > 0) expect(share, JSON.stringify(groups)).toBeGreaterThanOrEqual(promised);
    };
    for (const groups of HAND_MADE.slice(0, runs / 3)) await judge(groups);
    await fc.assert(fc.asyncProperty(anyGroups, judge), {
      numRuns: generatedCases(runs / 3),
      endOnFailure: true,
    });
  });

  test.each([
    [10, 0.98],
    [100, 0.8],
    [249, 0.502],
  ])(
    'with costs of 1 to %i, a limit of 500 gets at least %d, and not much more in the worst pattern',
    async (highest, promised) => {
      const { store, prefix } = await open();
      expect(promisedShare(500, [highest])).toBeCloseTo(promised);
      let run = 0;
      const shareOf = (groups: Groups) =>
        usefulShare(store, `${prefix}${run++}`, groups.limit, arrivalsOfGroups(groups));
      const { share: worst } = await shareOf(keptTooLong(500, highest, 2));
      expect(worst).toBeLessThan(promised + 0.002);
      expect(worst).toBeGreaterThanOrEqual(promised);
      const judge = async (groups: Groups) => {
        const { share, points } = await shareOf(groups);
        if (points > 0) expect(share, JSON.stringify(groups)).toBeGreaterThanOrEqual(promised);
      };
      const numRuns = generatedCases(runs / 5);
      await fc.assert(fc.asyncProperty(costlyGroups(500, [1, highest]), judge), {
        numRuns,
        endOnFailure: true,
      });
    },
  );

  test.each([
    [499, [1, 249]],
    [500, [2, 249]],
    [1250, [3, 300]],
  ] as const)(
    'a limit of %i with costs of %j admits all that an exact sliding log would',
    async (limit, costs) => {
      const { store, prefix } = await open();
      let run = 0;
      const judge = async (groups: Groups) => {
        const { share, points } = await usefulShare(
          store,
          `${prefix}${run++}`,
          limit,
          arrivalsOfGroups(groups),
        );
        if (points > 0) expect(share, JSON.stringify(groups)).toBe(1);
      };
      const numRuns = generatedCases(runs / 5);
      await fc.assert(fc.asyncProperty(costlyGroups(limit, costs), judge), { numRuns, endOnFailure: true });
    },
  );

  test.each(REPORTED)('a client that sends $name each period gets what it may', async ({ bursts }) => {
    const { store, prefix } = await open();
    const { share } = await usefulShare(store, prefix, bursts.limit, arrivalsOf(bursts));
    expect(share).toBeGreaterThanOrEqual(0.99);
  });
}
