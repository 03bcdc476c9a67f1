import { describe, expect, it } from 'vitest';
import { AdaptiveLimit } from '../../../../../src/gateway/upstream/turns/adaptive-limit.ts';
import { random } from '../../../../fixtures/random.ts';

const PHASE_MS = 30_000;

/** Numbers from 0 to below 1. */
function fractions(seed: number): () => number {
  const next = random(seed);
  return () => next(2 ** 30) / 2 ** 30;
}

/** What an upstream can do for a while. */
interface Phase {
  /** Requests that it works on at once; the others wait there. */
  readonly servers: number;
  readonly serviceMs: number;
  /** Requests that clients would have there; more than it takes by default. */
  readonly demand?: number;
}

interface Outcome {
  /** Of what it could have answered in the second half of the phase. */
  readonly goodput: number;
  readonly meanLimit: number;
}

/** An upstream with a queue of its own, in simulated time. */
class SimulatedUpstream {
  readonly limit = new AdaptiveLimit(512);
  readonly #random = fractions(7);
  readonly #spread: number;
  readonly #queue: number[] = [];
  /** In order of their ends. */
  readonly #running: { readonly endMs: number; readonly sentMs: number }[] = [];
  #nowMs = 0;
  #present = 0;

  /** @param spread of the logarithm of the service time */
  constructor(spread: number) {
    this.#spread = spread;
  }

  run(phase: Phase, lengthMs = PHASE_MS): Outcome {
    const untilMs = this.#nowMs + lengthMs;
    const settledMs = untilMs - lengthMs / 2;
    let answered = 0;
    let limits = 0;
    this.#fill(phase);
    for (;;) {
      const next = this.#running[0];
      if (next === undefined || next.endMs > untilMs) break;
      this.#running.shift();
      this.#nowMs = next.endMs;
      this.limit.note(next.sentMs, next.endMs, this.#present);
      this.#present--;
      this.#fill(phase);
      if (next.endMs < settledMs) continue;
      answered++;
      limits += this.limit.limit;
    }
    this.#nowMs = untilMs;
    const possible = (phase.servers * lengthMs) / 2 / phase.serviceMs;
    return { goodput: answered / possible, meanLimit: limits / answered };
  }

  #fill({ servers, serviceMs, demand = Number.POSITIVE_INFINITY }: Phase): void {
    for (; this.#present < Math.min(this.limit.limit, demand); this.#present++) this.#queue.push(this.#nowMs);
    while (this.#running.length < servers && this.#queue.length > 0) {
      const sentMs = this.#queue.shift() ?? this.#nowMs;
      const endMs = this.#nowMs + serviceMs * this.#noise();
      const at = this.#running.findIndex((other) => other.endMs > endMs);
      this.#running.splice(at === -1 ? this.#running.length : at, 0, { endMs, sentMs });
    }
  }

  /** Log-normal, with a mean of one. */
  #noise(): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.#random())) * Math.cos(2 * Math.PI * this.#random());
    return Math.exp(this.#spread * normal - this.#spread ** 2 / 2);
  }
}

describe.each([0.1, 0.5, 1])('with service times of spread %s', (spread) => {
  it('the limit leaves the upstream busy, and its own queue short', () => {
    for (const servers of [5, 20, 100]) {
      const { goodput, meanLimit } = new SimulatedUpstream(spread).run({ servers, serviceMs: 50 });
      expect(goodput).toBeGreaterThan(0.9);
      // A window of a small upstream has few rounds of responses, so its latency is known less well.
      expect(meanLimit).toBeLessThan((servers < 20 ? 2.2 : 1.6) * servers);
    }
  });

  it('the limit follows a capacity that changes', () => {
    const upstream = new SimulatedUpstream(spread);
    for (const servers of [20, 100, 5, 20]) {
      const { goodput, meanLimit } = upstream.run({ servers, serviceMs: 50 });
      expect(goodput).toBeGreaterThan(0.9);
      expect(meanLimit).toBeLessThan((servers < 20 ? 2.2 : 1.6) * servers);
    }
  });

  it('an upstream that becomes slower, or faster, is kept busy', () => {
    const upstream = new SimulatedUpstream(spread);
    for (const serviceMs of [50, 200, 20]) {
      expect(upstream.run({ servers: 20, serviceMs }).goodput).toBeGreaterThan(0.9);
    }
  });

  it('little demand neither raises the limit nor is held back', () => {
    const upstream = new SimulatedUpstream(spread);
    upstream.run({ servers: 20, serviceMs: 20 });
    const { goodput, meanLimit } = upstream.run({ servers: 20, serviceMs: 20, demand: 5 });
    expect(goodput).toBeGreaterThan(0.23);
    expect(meanLimit).toBeLessThan(60);
  });
});

it('where latencies hardly differ, next to nothing waits in the upstream', () => {
  for (const servers of [20, 40]) {
    const { goodput, meanLimit } = new SimulatedUpstream(0.02).run({ servers, serviceMs: 100 }, 60_000);
    expect(goodput).toBeGreaterThan(0.97);
    expect(meanLimit).toBeGreaterThan(0.97 * servers);
    expect(meanLimit).toBeLessThan(1.15 * servers);
  }
});

it('an upstream that is faster and slower by turns is kept busy, although its responses of one moment are alike', () => {
  const upstream = new SimulatedUpstream(0.02);
  const next = fractions(5);
  let served = 0;
  upstream.run({ servers: 40, serviceMs: 100 });
  for (let turn = 0; turn < 200; turn++) {
    const { goodput } = upstream.run({ servers: 40, serviceMs: 100 * (1 + next() / 2) }, 300);
    served += goodput;
  }
  expect(served / 200).toBeGreaterThan(0.9);
});

it('an upstream that answers a few requests a second is measured over longer windows', () => {
  const upstream = new SimulatedUpstream(0.5);
  const { goodput, meanLimit } = upstream.run({ servers: 4, serviceMs: 2_000 }, 600_000);
  expect(goodput).toBeGreaterThan(0.85);
  expect(meanLimit).toBeLessThan(12);
});

it('the limit stays between 3 and the most, whatever the latencies are', () => {
  const next = fractions(3);
  const limit = new AdaptiveLimit(40);
  const outside: number[] = [];
  for (let nowMs = 1; nowMs < 200_000; nowMs += 2) {
    limit.note(nowMs - Math.min(nowMs, next() ** 8 * 60_000), nowMs, Math.ceil(next() * 40));
    // An `expect` for each takes longer than the rest.
    if (!(limit.limit >= 3 && limit.limit <= 40)) outside.push(limit.limit);
  }
  expect(outside).toEqual([]);
});
