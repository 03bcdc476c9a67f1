import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyBursts, arrivalsOf, type Bursts, promisedShare } from './bursts.ts';
import type { ClockedStore } from './conformance.ts';
import { anyGroups, arrivalsOfGroups, type Groups, HAND_MADE } from './groups.ts';
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

/** That the store refuses hardly more than an exact sliding log would. `runs` patterns are tried. */
export function testsOfUsefulness(
  open: () => Promise<{ store: ClockedStore; prefix: string }>,
  runs: number,
): void {
  test('every pattern of bursts gets at least 98 % of what an exact sliding log would admit', async () => {
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
      { numRuns: runs, endOnFailure: true },
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
    await fc.assert(fc.asyncProperty(anyGroups, judge), { numRuns: Math.ceil(runs / 3), endOnFailure: true });
  });

  test.each(REPORTED)('a client that sends $name each period gets what it may', async ({ bursts }) => {
    const { store, prefix } = await open();
    const { share } = await usefulShare(store, prefix, bursts.limit, arrivalsOf(bursts));
    expect(share).toBeGreaterThanOrEqual(0.99);
  });
}
