/** Arrivals that counters get wrong. Times are in ms from a whole second of the clock. */
export interface Arrival {
  readonly atMs: number;
  readonly cost: number;
}

export interface Pattern {
  readonly name: string;
  readonly isWeighted: boolean;
  readonly arrivals: readonly Arrival[];
}

export const LIMIT = 500;
const DURATION_MS = 8000;

export function patterns(): readonly Pattern[] {
  return [
    { name: 'saturating, twice the limit', isWeighted: false, arrivals: evenly() },
    { name: 'Poisson at 1.2 times the limit', isWeighted: false, arrivals: poisson(1.2 * LIMIT, () => 1) },
    { name: "bursts at the window's edge", isWeighted: false, arrivals: edges() },
    { name: 'random bursts', isWeighted: false, arrivals: bursts() },
    { name: 'the limit within 5 ms, each second', isWeighted: false, arrivals: sleepers(LIMIT, 5, 1000, 0) },
    {
      name: 'the limit within 100 ms, each second',
      isWeighted: false,
      arrivals: sleepers(LIMIT, 100, 1000, 0),
    },
    { name: 'the same within 5 ms ± 1.5 ms', isWeighted: false, arrivals: sleepers(LIMIT, 5, 1000, 3) },
    {
      name: 'half the limit within 5 ms, each 0.5 s',
      isWeighted: false,
      arrivals: sleepers(LIMIT / 2, 5, 500, 0),
    },
    { name: 'costs of 1 to 10, Poisson at 1.2', isWeighted: true, arrivals: weighted() },
  ];
}

function evenly(): Arrival[] {
  const gapMs = 1000 / (2 * LIMIT);
  return Array.from({ length: DURATION_MS / gapMs }, (_, index) => ({ atMs: index * gapMs, cost: 1 }));
}

function poisson(ratePerSecond: number, costOf: () => number, random = seeded(1)): Arrival[] {
  const arrivals: Arrival[] = [];
  for (let atMs = 0; atMs < DURATION_MS; atMs += (-Math.log(1 - random()) * 1000) / ratePerSecond) {
    arrivals.push({ atMs, cost: costOf() });
  }
  return arrivals;
}

function weighted(): Arrival[] {
  const random = seeded(2);
  return poisson((1.2 * LIMIT) / 5.5, () => 1 + Math.floor(random() * 10));
}

/** One request opens a window; the rest of the limit comes just before its end, and a whole limit just after. */
function edges(): Arrival[] {
  const arrivals: Arrival[] = [];
  for (let startMs = 0; startMs + 1200 < DURATION_MS; startMs += 3000) {
    arrivals.push({ atMs: startMs, cost: 1 });
    for (let one = 1; one < LIMIT; one++) arrivals.push({ atMs: startMs + 940, cost: 1 });
    for (let one = 0; one < LIMIT; one++) arrivals.push({ atMs: startMs + 1060, cost: 1 });
  }
  return arrivals;
}

function bursts(): Arrival[] {
  const random = seeded(3);
  const arrivals: Arrival[] = [];
  for (let atMs = 0; atMs < DURATION_MS; atMs += -Math.log(1 - random()) * 250) {
    const size = 1 + Math.floor(random() * 300);
    for (let one = 0; one < size; one++) arrivals.push({ atMs, cost: 1 });
  }
  return arrivals;
}

/** A client that sends all it may within `widthMs`, and sleeps until the next period; it wakes up to `jitterMs` late. */
function sleepers(points: number, widthMs: number, periodMs: number, jitterMs: number): Arrival[] {
  const random = seeded(4);
  const arrivals: Arrival[] = [];
  for (let startMs = 100; startMs + periodMs <= DURATION_MS; startMs += periodMs) {
    const wakesMs = startMs + random() * jitterMs;
    for (let one = 0; one < points; one++)
      arrivals.push({ atMs: wakesMs + (one * widthMs) / points, cost: 1 });
  }
  return arrivals;
}

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
