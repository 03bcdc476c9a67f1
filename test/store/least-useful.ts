import fc from 'fast-check';
import { bucketKey } from '../../src/store/keys.ts';
import type { Decision } from '../../src/store/store.ts';
import { admittedExactly, anyBursts, arrivalsOf, type Bursts, pointsOf, WINDOW_US } from './bursts.ts';
import { clockedMemory } from './clocked-memory.ts';
import type { ClockedStore } from './conformance.ts';

/** Calls sent before the first is answered: more, and a busy machine answers too late. */
const IN_FLIGHT = 50;

export interface Found {
  readonly bursts: Bursts;
  /** What the counter admits of what an exact sliding log admits. */
  readonly share: number;
}

/** What a store admits of some bursts, as a share of what an exact sliding log admits of them: `points`. */
export async function usefulShare(
  store: ClockedStore,
  prefix: string,
  bursts: Bursts,
): Promise<{ share: number; points: number }> {
  const { limit } = bursts;
  const arrivals = arrivalsOf(bursts);
  const buckets = [{ key: bucketKey(prefix, 'a', 'account-read', 'a'), limit }];
  const windowSeconds = WINDOW_US / 1_000_000;
  const decisions: Decision[] = [];
  for (let first = 0; first < arrivals.length; first += IN_FLIGHT) {
    const calls = arrivals
      .slice(first, first + IN_FLIGHT)
      .map(({ atUs, cost }) => store.charge({ buckets, cost, windowSeconds }, atUs));
    decisions.push(...(await Promise.all(calls)));
  }
  const points = pointsOf(arrivals, admittedExactly(arrivals, limit));
  const admitted = decisions.map(({ outcome }) => outcome === 'admitted');
  return { share: pointsOf(arrivals, admitted) / points, points };
}

/**
 * Searches for the pattern of which the memory store admits the smallest share: random patterns at first, then variations
 * of the worst so far.
 */
export async function leastUseful(tries: number, seed: number): Promise<Found> {
  let worst: Found | undefined;
  for (const [index, fresh] of fc.sample(anyBursts, { numRuns: tries, seed }).entries()) {
    const bursts = worst === undefined || index < tries / 3 ? fresh : varied(worst.bursts, fresh, index);
    const { share, points } = await usefulShare(clockedMemory(), 'm', bursts);
    if (points > 0 && (worst === undefined || share < worst.share)) worst = { bursts, share };
  }
  if (worst === undefined) throw new Error('no pattern had any points');
  return worst;
}

/** The pattern with one or two fields of another. */
function varied(bursts: Bursts, fresh: Bursts, index: number): Bursts {
  const names = Object.keys(bursts) as (keyof Bursts)[];
  const taken = [names[index % names.length], names[Math.floor(index / names.length) % names.length]];
  return { ...bursts, ...Object.fromEntries(taken.flatMap((name) => (name ? [[name, fresh[name]]] : []))) };
}
