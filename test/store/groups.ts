/**
 * Arrivals in groups of simultaneous requests. These are the patterns by which a hand finds the least useful moments of a counter:
 * a point that counts a little too long, and a large charge that comes just then.
 */
import fc from 'fast-check';
import { type Arrival, START_US, WINDOW_US } from './bursts.ts';

interface Group {
  /** From the start of the period, in windows. */
  readonly at: number;
  readonly cost: number;
  readonly requests: number;
}

export interface Groups {
  readonly limit: number;
  /** Periods. */
  readonly count: number;
  /** In windows. */
  readonly period: number;
  readonly groups: readonly Group[];
}

const US = 1 / WINDOW_US;
/** Nearly a slot of 1/100 of the window. */
const LATE_IN_SLOT = 0.009;

/**
 * In each period, as many early points as an entry keeps too long, the rest of the points late in the same slot, and the most
 * expensive charge when the early points are a window old. An exact log has room for it just then; the counter does not.
 */
export function keptTooLong(limit: number, cost: number, period: number): Groups {
  const early = Math.floor(limit / 250) - 1;
  const groups = [
    { at: 1, cost, requests: 1 },
    { at: 0, cost: 1, requests: early },
    { at: LATE_IN_SLOT, cost: 1, requests: limit + 1 - cost - early },
  ];
  return { limit, count: 6, period, groups };
}

export const HAND_MADE: readonly Groups[] = [500, 749, 750, 1000, 2000].flatMap((limit) =>
  [1, 2, 10].flatMap((cost) => [1, 1 + LATE_IN_SLOT, 1.5, 2].map((p) => keptTooLong(limit, cost, p))),
);

const moment = fc.oneof(
  fc.constantFrom(0, US, 2 * US, LATE_IN_SLOT, 0.01 - US, 0.01, 0.5, 1 - US, 1, 1 + US, 1.01),
  fc.double({ min: 0, max: 2, noNaN: true }),
);

function groupsOf(limit: fc.Arbitrary<number>, [lowest, highest]: readonly [number, number]) {
  const group = fc.record({
    at: moment,
    cost: fc.oneof(fc.constantFrom(lowest, highest), fc.integer({ min: lowest, max: highest })),
    requests: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 300 })),
  });
  return fc.record({
    limit,
    count: fc.integer({ min: 2, max: 8 }),
    period: fc.oneof(fc.constantFrom(1, 1 + US, 1.01, 2, 2), fc.double({ min: 0.1, max: 2.5, noNaN: true })),
    groups: fc.array(group, { minLength: 1, maxLength: 4 }),
  });
}

/** The contract's costs are 1 to 10. */
export const anyGroups: fc.Arbitrary<Groups> = groupsOf(
  fc.oneof(fc.constantFrom(499, 500, 749, 750, 1000), fc.integer({ min: 10, max: 1000 })),
  [1, 10],
);

/** Groups with these lowest and highest costs. */
export function costlyGroups(limit: number, costs: readonly [number, number]): fc.Arbitrary<Groups> {
  return groupsOf(fc.constant(limit), costs);
}

export function arrivalsOfGroups({ count, period, groups }: Groups): Arrival[] {
  const arrivals: Arrival[] = [];
  for (let turn = 0; turn < count; turn++) {
    for (const { at, cost, requests } of groups) {
      const atUs = START_US + Math.round((turn * period + at) * WINDOW_US);
      for (let request = 0; request < requests; request++) arrivals.push({ atUs, cost });
    }
  }
  return arrivals.sort((a, b) => a.atUs - b.atUs);
}
