import fc from 'fast-check';
import { bucketKey } from '../../src/store/keys.ts';
import type { Decision } from '../../src/store/store.ts';
import {
  type Arrival,
  admittedExactly,
  anyBursts,
  arrivalsOf,
  type Bursts,
  pointsOf,
  WINDOW_US,
} from './bursts.ts';
import { clockedMemory } from './clocked-memory.ts';
import type { ClockedStore } from './conformance.ts';
import { anyGroups, arrivalsOfGroups, type Groups, HAND_MADE } from './groups.ts';

/** Calls sent before the first is answered: more, and a busy machine answers too late. */
const IN_FLIGHT = 50;

interface Pattern {
  readonly limit: number;
}

export interface Found<P extends Pattern> {
  readonly pattern: P;
  /** What the counter admits of what an exact sliding log admits. */
  readonly share: number;
}

/** What a store admits of some arrivals, as a share of what an exact sliding log admits of them: `points`. */
export async function usefulShare(
  store: ClockedStore,
  prefix: string,
  limit: number,
  arrivals: readonly Arrival[],
): Promise<{ share: number; points: number }> {
  const windowSeconds = WINDOW_US / 1_000_000;
  const buckets = [{ key: bucketKey(prefix, 'a', 'account-read', 'a'), limit, windowSeconds }];
  const decisions: Decision[] = [];
  for (let first = 0; first < arrivals.length; first += IN_FLIGHT) {
    const calls = arrivals
      .slice(first, first + IN_FLIGHT)
      .map(({ atUs, cost }) => store.charge({ buckets, cost }, atUs));
    decisions.push(...(await Promise.all(calls)));
  }
  const points = pointsOf(arrivals, admittedExactly(arrivals, limit));
  const admitted = decisions.map(({ outcome }) => outcome === 'admitted');
  return { share: pointsOf(arrivals, admitted) / points, points };
}

/** Searches random bursts for the pattern that is least useful: the memory store admits the smallest share of it. */
export function leastUsefulBursts(tries: number, seed: number): Promise<Found<Bursts>> {
  return search(fc.sample(anyBursts, { numRuns: tries, seed }), [], arrivalsOf);
}

/** The same for groups of simultaneous requests, beginning with those made by hand. */
export function leastUsefulGroups(tries: number, seed: number): Promise<Found<Groups>> {
  return search(fc.sample(anyGroups, { numRuns: tries, seed }), HAND_MADE, arrivalsOfGroups);
}

/** What was found of a pattern: the given ones are tried in each search. */
const known = new Map<Pattern, ReturnType<typeof usefulShare>>();

/** Tries the given patterns, then some of the random ones, then variations of the worst so far. */
async function search<P extends Pattern>(
  random: readonly P[],
  given: readonly P[],
  arrivals: (pattern: P) => readonly Arrival[],
): Promise<Found<P>> {
  let worst: Found<P> | undefined;
  for (const [index, fresh] of [...given, ...random].entries()) {
    const isLate = index >= given.length + random.length / 3;
    const pattern: P = isLate && worst !== undefined ? varied(worst.pattern, fresh, index) : fresh;
    const measured =
      known.get(pattern) ?? usefulShare(clockedMemory(), 'm', pattern.limit, arrivals(pattern));
    known.set(pattern, measured);
    const { share, points } = await measured;
    if (points > 0 && (worst === undefined || share < worst.share)) worst = { pattern, share };
  }
  if (worst === undefined) throw new Error('no pattern had any points');
  return worst;
}

/** The pattern with one or two fields of another. */
function varied<P extends Pattern>(pattern: P, fresh: P, index: number): P {
  const names = Object.keys(pattern) as (keyof P)[];
  const taken = [names[index % names.length], names[Math.floor(index / names.length) % names.length]];
  return { ...pattern, ...Object.fromEntries(taken.flatMap((name) => (name ? [[name, fresh[name]]] : []))) };
}
