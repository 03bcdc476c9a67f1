/** Arrivals in bursts, the pattern that coalescing handles worst, and how much of them an exact log would admit. */
import fc from 'fast-check';

export interface Arrival {
  readonly atUs: number;
  readonly cost: number;
}

/** Fractions are of the window, unless a field says otherwise. */
export interface Bursts {
  readonly limit: number;
  readonly count: number;
  /** From the start of one burst to the start of the next. */
  readonly period: number;
  /** From the start of a slot of 1/100 of the window to the first burst, in slots. */
  readonly phase: number;
  /** Of each burst: its first charge to its last. */
  readonly width: number;
  /** Every burst starts up to this much later. */
  readonly jitter: number;
  /** Points that a burst asks for, of the limit. */
  readonly size: number;
  /** Costs in turn, then from the first again. */
  readonly costs: readonly number[];
  /** A charge alone, this cost at the end of each burst; 0 for none. */
  readonly last: number;
  readonly seed: number;
}

export const WINDOW_US = 10_000_000;
const SLOT_US = WINDOW_US / 100;
export const START_US = 1_790_000_000_000_000;

/** The contract's costs are 1 to 10. */
const cost = fc.integer({ min: 1, max: 10 });
const ofWindow = fc.oneof(
  fc.constantFrom(0, 0.001, 0.005, 0.01, 0.02, 0.1, 0.3),
  fc.double({ min: 0, max: 1, noNaN: true }),
);

export const anyBursts: fc.Arbitrary<Bursts> = fc.record({
  limit: fc.oneof(
    fc.constantFrom(100, 250, 499, 500, 501, 749, 750, 1000),
    fc.integer({ min: 10, max: 2000 }),
  ),
  count: fc.integer({ min: 2, max: 6 }),
  period: fc.oneof(
    fc.constantFrom(0.25, 0.5, 1, 1.000_001, 1.01),
    fc.double({ min: 0.05, max: 2, noNaN: true }),
  ),
  phase: fc.double({ min: 0, max: 1, noNaN: true }),
  width: ofWindow,
  jitter: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.02, noNaN: true }), ofWindow),
  size: fc.double({ min: 0.1, max: 1.5, noNaN: true }),
  costs: fc.oneof(fc.constant([1]), fc.array(cost, { minLength: 1, maxLength: 12 })),
  last: fc.oneof(fc.constant(0), cost),
  seed: fc.integer({ min: 1, max: 1_000_000 }),
});

export function arrivalsOf(bursts: Bursts): Arrival[] {
  const { limit, count, period, phase, width, jitter, size, costs, last } = bursts;
  const random = seeded(bursts.seed);
  const arrivals: Arrival[] = [];
  for (let burst = 0; burst < count; burst++) {
    const startUs = START_US + phase * SLOT_US + (burst * period + random() * jitter) * WINDOW_US;
    const burstCosts = costsWithin(size * limit, costs);
    const gapUs = (width * WINDOW_US) / Math.max(1, burstCosts.length - 1);
    for (const [index, cost] of burstCosts.entries()) {
      arrivals.push({ atUs: Math.floor(startUs + index * gapUs), cost });
    }
    if (last > 0) arrivals.push({ atUs: Math.floor(startUs + width * WINDOW_US) + 1, cost: last });
  }
  return arrivals.sort((a, b) => a.atUs - b.atUs);
}

/** Which arrivals an exact sliding log admits. */
export function admittedExactly(arrivals: readonly Arrival[], limit: number): boolean[] {
  const log: Arrival[] = [];
  let oldest = 0;
  let held = 0;
  return arrivals.map((arrival) => {
    for (let first = log[oldest]; first && first.atUs <= arrival.atUs - WINDOW_US; first = log[oldest]) {
      held -= first.cost;
      oldest += 1;
    }
    if (held + arrival.cost > limit) return false;
    log.push(arrival);
    held += arrival.cost;
    return true;
  });
}

export function pointsOf(arrivals: readonly Arrival[], isAdmitted: readonly boolean[]): number {
  return arrivals.reduce((sum, { cost }, index) => sum + (isAdmitted[index] ? cost : 0), 0);
}

/**
 * The share of an exact log's points that lua/README.md promises for these costs. Whenever a charge is denied that the
 * exact log admits, the window before it holds all of the limit but `cost - 1` points and what an entry keeps too long.
 */
export function promisedShare(limit: number, costs: readonly number[]): number {
  const keptTooLong = Math.max(0, Math.floor(limit / 250) - 1);
  return keptTooLong === 0 ? 1 : 1 - (Math.max(...costs) - 1 + keptTooLong) / limit;
}

function costsWithin(points: number, costs: readonly number[]): number[] {
  const within: number[] = [];
  let sum = 0;
  for (let index = 0; sum < points; index++) {
    const cost = costs[index % costs.length] ?? 1;
    within.push(cost);
    sum += cost;
  }
  return within;
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
