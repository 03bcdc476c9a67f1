/** The claims of docs/scale.md about leased grants, tried on the model beside this file. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { generatedCases } from '../fixtures/generated-cases.ts';
import {
  type Admission,
  type Arrival,
  CALM,
  type Design,
  runLeasedGrants,
  type Weather,
} from './leased-grants.ts';

const WINDOW_MS = 1_000;

/** Requests of one replica: a burst where `everyMs` is 0, otherwise a stream. */
interface Series {
  readonly startMs: number;
  readonly replica: number;
  readonly cost: number;
  readonly count: number;
  readonly everyMs: number;
}

const LENGTH_MS = 3 * WINDOW_MS;

/** Bursts, often a window after one another, and streams, whose requests come at all times of a lease. */
function anyArrivals(replicas: number, maxCost: number, maxBurst: number): fc.Arbitrary<Arrival[]> {
  const replica = fc.nat({ max: replicas - 1 });
  const cost = fc.integer({ min: 1, max: maxCost });
  const burst = fc.record({
    startMs: fc.oneof(
      fc.integer({ min: 0, max: LENGTH_MS }),
      fc.constantFrom(0, 999, 1_000, 1_001, 2_000, 2_005),
    ),
    replica,
    cost,
    count: fc.integer({ min: 1, max: maxBurst }),
    everyMs: fc.constant(0),
  });
  const stream = fc.record({
    startMs: fc.nat({ max: WINDOW_MS }),
    replica,
    cost,
    count: fc.integer({ min: 10, max: 150 }),
    everyMs: fc.integer({ min: 1, max: 30 }),
  });
  return fc
    .tuple(fc.array(burst, { minLength: 1, maxLength: 12 }), fc.array(stream, { maxLength: 6 }))
    .map(([bursts, streams]) =>
      [...bursts, ...streams].flatMap(arrivalsOf).sort((one, other) => one.atMs - other.atMs),
    );
}

function arrivalsOf({ startMs, replica, cost, count, everyMs }: Series): Arrival[] {
  return Array.from({ length: count }, (_, index) => ({ atMs: startMs + index * everyMs, replica, cost }));
}

const DRIFT = 0.01;
const anyWeather: fc.Arbitrary<Weather> = fc
  .record({
    delayMs: fc.nat({ max: 60 }),
    lost: fc.uint8Array({ minLength: 8, maxLength: 8 }),
    rates: fc.array(fc.constantFrom(1 - DRIFT, 1, 1 + DRIFT), { minLength: 6, maxLength: 6 }),
  })
  .map(({ delayMs, lost, rates }) => ({
    delayMs,
    isLost: (settlement) => (lost[settlement % lost.length] ?? 0) < 64,
    rateOf: (replica) => rates[replica] ?? 1,
    drift: DRIFT,
  }));

const anyDesign: fc.Arbitrary<Design> = fc.record({
  limit: fc.integer({ min: 20, max: 400 }),
  windowMs: fc.constant(WINDOW_MS),
  leaseMs: fc.integer({ min: 1, max: WINDOW_MS }),
  grant: fc.integer({ min: 5, max: 12 }),
  settles: fc.boolean(),
});

describe('leased grants', () => {
  test('are strict: no window has more points than the limit, with slow calls, wrong clocks and lost settlements', () => {
    fc.assert(
      fc.property(anyDesign, anyWeather, anyArrivals(6, 5, 40), (design, weather, arrivals) => {
        const { admitted } = runLeasedGrants(design, arrivals, weather);
        expect(fullestWindow(admitted)).toBeLessThanOrEqual(design.limit);
      }),
      { numRuns: generatedCases(60) },
    );
  });

  test('end for a slow clock too, and settle by its worst reading', () => {
    const slow: Weather = { ...CALM, drift: 0.25, rateOf: (replica) => (replica === 0 ? 0.75 : 1) };
    const design = { limit: 10, windowMs: WINDOW_MS, leaseMs: 400, grant: 10 };
    // By its own clock, replica 0 spends after 375 and 225 ms. Replica 1 spends what the bucket has forgotten of that.
    for (const [settles, spentMs, againMs] of [
      [false, 500, 1_401],
      [true, 300, 1_250],
    ] as const) {
      const arrivals: Arrival[] = [
        { atMs: 0, replica: 0, cost: 1 },
        { atMs: spentMs, replica: 0, cost: 9 },
        ...(settles ? [{ atMs: 310, replica: 0, cost: 1 }] : []),
        { atMs: againMs, replica: 1, cost: 10 },
      ];
      const { admitted } = runLeasedGrants({ ...design, settles }, arrivals, slow);
      expect(fullestWindow(admitted), JSON.stringify(admitted)).toBeLessThanOrEqual(design.limit);
    }
  });

  test('that settle lose at most four grants of each replica, for any arrivals', () => {
    const replicas = 3;
    fc.assert(
      fc.property(anyDesign, anyArrivals(replicas, 5, 400), (shape, arrivals) => {
        const design = { ...shape, limit: shape.limit * 6, settles: true };
        const { admitted } = runLeasedGrants(design, arrivals);
        const least = 1 - (4 * replicas * design.grant) / design.limit;
        expect(pointsOf(admitted) / pointsOf(exactLog(design.limit, arrivals))).toBeGreaterThanOrEqual(least);
      }),
      { numRuns: generatedCases(300) },
    );
  });

  test('that do not settle lose about lease / (window + lease) of a load that never ends', () => {
    for (const leaseMs of [20, 100, 250, 500]) {
      const share = shareOfSaturation({ leaseMs, settles: false }, 8);
      const expected = WINDOW_MS / (WINDOW_MS + leaseMs);
      expect(Math.abs(share - expected), `${share} beside ${expected}`).toBeLessThan(0.04);
    }
  });

  test('that settle lose next to nothing of it', () => {
    for (const leaseMs of [20, 100, 250, 500]) {
      expect(shareOfSaturation({ leaseMs, settles: true }, 8)).toBeGreaterThan(0.97);
    }
  });

  test('need about one call a grant, however many replicas are refused', () => {
    const windows = 10;
    const design: Design = { limit: 4_000, windowMs: WINDOW_MS, leaseMs: 100, grant: 10, settles: true };
    const { calls } = runLeasedGrants(design, saturating(20, windows, design.limit));
    const grants = (windows * design.limit) / design.grant;
    expect(calls / grants).toBeLessThan(1.2);
  });
});

/** Of what an exact log admits of twice the limit, spread over replicas. */
function shareOfSaturation(part: Pick<Design, 'leaseMs' | 'settles'>, replicas: number): number {
  const design: Design = { limit: 2_000, windowMs: WINDOW_MS, grant: 2, ...part };
  const arrivals = saturating(replicas, 12, design.limit);
  const { admitted } = runLeasedGrants(design, arrivals, CALM);
  return pointsOf(admitted) / pointsOf(exactLog(design.limit, arrivals));
}

/** Twice the limit, evenly, each request at the next replica. */
function saturating(replicas: number, windows: number, limit: number): Arrival[] {
  const perWindow = 2 * limit;
  return Array.from({ length: perWindow * windows }, (_, index) => ({
    atMs: (index * WINDOW_MS) / perWindow,
    replica: index % replicas,
    cost: 1,
  }));
}

function exactLog(limit: number, arrivals: readonly Arrival[]): Admission[] {
  const admitted: Admission[] = [];
  let [first, counted] = [0, 0];
  for (const { atMs, cost } of arrivals) {
    for (
      let old = admitted[first];
      old !== undefined && old.atMs + WINDOW_MS <= atMs;
      old = admitted[first]
    ) {
      counted -= old.cost;
      first++;
    }
    if (counted + cost > limit) continue;
    admitted.push({ atMs, cost });
    counted += cost;
  }
  return admitted;
}

function fullestWindow(admitted: readonly Admission[]): number {
  const sorted = admitted.toSorted((one, other) => one.atMs - other.atMs);
  let [first, points, fullest] = [0, 0, 0];
  for (const { atMs, cost } of sorted) {
    points += cost;
    for (let old = sorted[first]; old !== undefined && old.atMs + WINDOW_MS <= atMs; old = sorted[first]) {
      points -= old.cost;
      first++;
    }
    fullest = Math.max(fullest, points);
  }
  return fullest;
}

function pointsOf(admitted: readonly Admission[]): number {
  return admitted.reduce((total, { cost }) => total + cost, 0);
}
